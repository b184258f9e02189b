"""Where Hydra looks for YAML: our conf/ and recipes/, plug-ins', then the caller's."""

from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from agentic_rl.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent
RECIPES = "recipe"


def data_dir(name: str) -> Path:
    """`conf` or `recipes`: inside the package in a wheel, beside it in a checkout."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


class RecipeSource(ConfigSource):
    """Serves `recipes/x.yaml` as `recipe/x`, so that `+recipe=x` finds it."""

    @staticmethod
    def scheme() -> str:
        return "recipes"

    def available(self) -> bool:
        return Path(self.path).is_dir()

    def is_group(self, config_path: str) -> bool:
        folder = self._inside(config_path)
        return config_path == "" or (folder is not None and folder.is_dir())

    def is_config(self, config_path: str) -> bool:
        file = self._inside(self._normalize_file_name(config_path))
        return file is not None and file.is_file()

    def load_config(self, config_path: str) -> ConfigResult:
        file = self._inside(self._normalize_file_name(config_path))
        if file is None or not file.is_file():
            raise ConfigLoadError(f"no recipe {config_path}")
        try:
            header = self._get_header_dict(file.read_text(encoding="utf-8")[:512])
            config = OmegaConf.load(file)
        except ValueError as error:
            raise ConfigError(f"{short(file)}: {error}") from error
        return ConfigResult(
            provider=self.provider, path=self.full_path(), config=config, header=header
        )

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        if config_path == "":
            return [] if results_filter is ObjectType.CONFIG else [RECIPES]
        folder = self._inside(config_path)
        found: set[str] = set()
        for path in folder.iterdir() if folder else ():
            if path.suffix == ".yaml" and results_filter is not ObjectType.GROUP:
                found.add(path.stem)
            elif path.is_dir() and results_filter is not ObjectType.CONFIG:
                found.add(path.name)
        return sorted(found)

    def _inside(self, config_path: str) -> Path | None:
        group, _, rest = config_path.partition("/")
        return Path(self.path, rest) if group == RECIPES else None


class AgenticRLSearchPath(SearchPathPlugin):
    """The first match wins: a user's recipe may shadow ours, a user's option may not."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for provider, folder in recipe_folders():
            search_path.append(provider, f"recipes://{folder}")
        for provider, folder in plugin_folders("agentic_rl.conf"):
            search_path.append(provider, f"file://{folder}")
        own = Path.cwd() / "conf"
        if own.is_dir() and own.resolve() != data_dir("conf"):
            search_path.append("./conf", f"file://{own}")


def short(path: Path) -> str:
    """The path as a person would type it from here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def recipe_folders() -> Iterator[tuple[str, Path]]:
    """(who provides them, folder): the caller's ./recipes, ours, then plug-ins'."""
    own, ours = Path.cwd() / "recipes", data_dir("recipes")
    if own.is_dir() and own.resolve() != ours:
        yield "./recipes", own
    if ours.is_dir():
        yield "agentic-rl", ours
    yield from plugin_folders("agentic_rl.recipes")


def recipe_names() -> set[str]:
    """Every NAME of `+recipe=NAME`."""
    return {
        file.relative_to(folder).with_suffix("").as_posix()
        for _, folder in recipe_folders()
        for file in folder.rglob("*.yaml")
    }


def plugin_folders(group: str) -> Iterator[tuple[str, Path]]:
    """Folders that entry points of this group name as packages; nothing is imported."""
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        for folder in _package_folders(point.value):
            yield point.name, folder


def _package_folders(package: str) -> list[Path]:
    """Where a dotted package lies; empty where it does not exist. It needs no `__init__.py`."""
    top, *inner = package.split(".")
    spec = find_spec(top)
    roots = [] if spec is None else list(spec.submodule_search_locations or ())
    return [folder for root in roots if (folder := Path(root, *inner)).is_dir()]


def register() -> None:
    """Makes Hydra in this process look there; calling it again changes nothing."""
    Plugins.instance().register(RecipeSource)
    Plugins.instance().register(AgenticRLSearchPath)
