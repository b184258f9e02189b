"""`agentic-rl list [recipes | FAMILY]`: what can be named, one line each."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rl.config import FAMILIES
from agentic_rl.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from agentic_rl.registry import Registry

HELP = "recipes and components, one line each: agentic-rl list [recipes | reward | ...]"
HYDRA = False

Entry = tuple[str, str]


def main(argv: Sequence[str]) -> int:
    kinds = ("recipes", *FAMILIES)
    parser = argparse.ArgumentParser(prog="agentic-rl list", description=HELP)
    parser.add_argument("kind", nargs="*", help=f"one of {', '.join(kinds)}; none lists all")
    chosen = parser.parse_args(argv).kind
    for kind in chosen:
        if kind not in kinds:
            near = did_you_mean(kind, kinds)
            raise UsageError(f"unknown kind '{kind}'.{near} Known: {', '.join(kinds)}.")
    _print([(kind, _entries(kind)) for kind in chosen or kinds])
    return 0


def _entries(kind: str) -> list[Entry]:
    return list(_recipes() if kind == "recipes" else _options(kind))


def _print(sections: Sequence[tuple[str, list[Entry]]]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    width = max((len(name) for _, entries in sections for name, _ in entries), default=0)
    for kind, entries in sections:
        how = "+recipe=NAME" if kind == "recipes" else f"{kind}=NAME"
        console.print(Text(kind, style="bold"), Text(f"({how})", style="dim"))
        for name, about in entries:
            line = Text(f"  {name:<{width}}  ", style="cyan").append(about, style="default")
            console.print(line, soft_wrap=True)


def _recipes() -> Iterator[Entry]:
    from agentic_rl.searchpath import recipe_folders

    files: dict[str, Path] = {}
    for _, folder in recipe_folders():
        for file in folder.rglob("*.yaml"):
            files.setdefault(file.relative_to(folder).with_suffix("").as_posix(), file)
    for name, file in sorted(files.items()):
        yield name, _comment(file)


def _options(family: str) -> Iterator[Entry]:
    """Option files, each with its first comment, else with the component's first line."""
    from importlib import import_module

    from agentic_rl.compose import open_loader
    from agentic_rl.registry import Registry

    module = import_module(f"agentic_rl.{family}")
    (registry,) = (value for value in vars(module).values() if isinstance(value, Registry))
    loader = open_loader()
    folders = [source.path for source in loader.get_sources() if source.scheme() == "file"]
    for name in loader.get_group_options(family):
        files = [Path(folder, family, f"{name}.yaml") for folder in folders]
        about = next((_comment(file) for file in files if file.is_file()), "")
        yield name, about or (_docstring(registry, name) if name in registry.names() else "")


def _docstring(registry: "Registry[Any]", name: str) -> str:
    return next(iter((registry.get(name).__doc__ or "").strip().splitlines()), "")


def _comment(file: Path) -> str:
    """The first comment above the first key, past `# @package`."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        text = line.strip()
        if text.startswith("#") and not text.startswith("# @"):
            return text.lstrip("# ")
        if text and not text.startswith("#"):
            return ""
    return ""
