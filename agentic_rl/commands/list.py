"""`agentic-rl list [recipes | FAMILY]`: what can be named, one line each."""

import argparse
import re
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
    """Option files, each with its first sentence, else with its component's first line."""
    from importlib import import_module

    from agentic_rl.compose import open_loader
    from agentic_rl.registry import Registry

    module = import_module(f"agentic_rl.{family}")
    (registry,) = (value for value in vars(module).values() if isinstance(value, Registry))
    loader = open_loader()
    folders = [source.path for source in loader.get_sources() if source.scheme() == "file"]
    for name in loader.get_group_options(family):
        files = [Path(folder, family, f"{name}.yaml") for folder in folders]
        file = next((file for file in files if file.is_file()), None)
        about = _comment(file) if file else ""
        component = (_name(file) if file else "") or name
        known = component in registry.names()
        yield name, about or (_docstring(registry, component) if known else "")


def _docstring(registry: "Registry[Any]", name: str) -> str:
    """The first line that its author wrote: a dataclass without a docstring is given one."""
    about = (registry.get(name).__doc__ or "").strip()
    return "" if re.match(r"\w+\(.*\)$", about) else next(iter(about.splitlines()), "")


def _name(file: Path) -> str:
    """The component that an option file names."""
    found = re.search(r"^name:\s*([\w.-]+)", _text(file), re.MULTILINE)
    return found[1] if found else ""


def _comment(file: Path) -> str:
    """The first sentence above the first key that says what this is.

    `# @package`, the file's own name and where it comes from (`# Source: ...`) do not.
    """
    found: list[str] = []
    for line in _text(file).splitlines():
        text = line.strip().lstrip("# ").rstrip()
        if line.strip() and not line.startswith("#"):
            break
        if not found and (not text or text.startswith(("@", "Source:")) or _path(text)):
            continue
        found.append(text)
        if not text or text[-1] in ".!?":
            break
    return " ".join(found).strip()


def _path(text: str) -> bool:
    return text.endswith(".yaml") and " " not in text


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
