"""One lookup for every pluggable part: built-ins by module, plug-ins by entry point."""

import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from agentic_rl.errors import AgenticRLError, ConfigError, UnknownComponentError, did_you_mean
from agentic_rl.wording import plain

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Named factories of one kind; `package` holds the built-ins, one module each.

    A plug-in declares an entry point in the group `package` and is imported only when named.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._known: dict[str, Callable[..., T] | EntryPoint] = {}
        self._filled = False

    def register(self, name: str) -> Callable[[F], F]:
        """A decorator that makes a frozen dataclass known as `name`."""

        def add(factory: F) -> F:
            self._claim(name, factory)
            return factory

        return add

    def names(self) -> list[str]:
        self._fill()
        return sorted(self._known)

    def get(self, name: str) -> Callable[..., T]:
        """The factory; UnknownComponentError with a near match where there is none."""
        self._fill()
        if name not in self._known:
            raise UnknownComponentError(
                f"unknown {self.kind} '{name}'.{did_you_mean(name, self._known)}"
                f" Known: {', '.join(self.names())}."
            )
        factory = self._known[name]
        if isinstance(factory, EntryPoint):
            factory = self._known[name] = self._load(factory)
        return factory

    def build(self, spec: Mapping[str, Any]) -> T:
        """Builds `{name: ..., **fields}`; the factory's own dataclass checks keys and types."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        if "name" not in spec:
            raise ConfigError(f"{self.kind} has no name: choose one with {self.kind}=NAME")
        name = spec["name"]
        fields = {key: value for key, value in spec.items() if key != "name"}
        factory = self.get(name)
        schema = OmegaConf.structured(factory)
        unknown = [key for key in fields if key not in schema]
        if unknown:
            near = did_you_mean(unknown[0], [str(key) for key in schema])
            raise ConfigError(
                f"{self.kind} '{name}' has no option '{unknown[0]}'."
                f"{near or f' Where a recipe sets it, ~{self.kind}.{unknown[0]} leaves it out.'}"
                f" Options: {', '.join(str(key) for key in schema) or 'none'}."
            )
        try:
            return cast("T", OmegaConf.to_object(OmegaConf.merge(schema, fields)))
        except OmegaConfBaseException as error:
            key = f"{self.kind}.{error.full_key}" if error.full_key else self.kind
            raise ConfigError(
                f"{self.kind} '{name}': {plain(str(error.msg or error), key)}"
            ) from error
        except (AgenticRLError, ValueError) as error:
            raise ConfigError(f"{self.kind} '{name}': {error}") from error

    def _load(self, point: EntryPoint) -> Callable[..., T]:
        try:
            return cast("Callable[..., T]", point.load())
        except Exception as error:
            raise ConfigError(
                f"the plug-in {self.kind} '{point.name}' ({point.value}) does not load:"
                f" {type(error).__name__}: {error}"
            ) from error

    def _fill(self) -> None:
        if self._filled:
            return
        for module in pkgutil.iter_modules(import_module(self.package).__path__):
            import_module(f"{self.package}.{module.name}")
        for point in entry_points(group=self.package):
            self._claim(point.name, point)
        self._filled = True

    def _claim(self, name: str, factory: Callable[..., T] | EntryPoint) -> None:
        known = self._known.setdefault(name, factory)
        if known is factory:
            return
        both = isinstance(known, EntryPoint) and isinstance(factory, EntryPoint)
        if not (both and known == factory):  # one package may lie on the path twice
            raise ConfigError(
                f"two {self.kind}s are called '{name}': {_origin(known)} and {_origin(factory)}"
            )


def _origin(factory: Callable[..., Any] | EntryPoint) -> str:
    if isinstance(factory, EntryPoint):
        return factory.value
    return f"{factory.__module__}:{factory.__qualname__}"
