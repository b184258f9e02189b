"""What a command line names, in every combination of its comma lists, and who set each value."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rl.errors import ConfigError

if TYPE_CHECKING:
    from hydra._internal.config_loader_impl import ConfigLoaderImpl


_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Convention:
    """One field of a component: its value, who set it, why, and what it means."""

    field: str
    value: str
    source: str
    reason: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One component as configured; `notes` are the comments that its option files begin with."""

    label: str
    option: str
    spec: dict[str, Any]
    notes: tuple[str, ...]
    conventions: tuple[Convention, ...]


@dataclass(frozen=True, slots=True)
class _OptionFile:
    option: str
    notes: str
    comments: dict[str, str]
    values: dict[str, Any]


class Composer:
    """Composes each combination of a command line once."""

    def __init__(self, words: Sequence[str]) -> None:
        from agentic_rl.compose import load, open_loader

        self._loader = open_loader()
        self.lines = _expand(self._loader, words)
        self._configs = [
            load(self._loader, "train", line, command="explain") for line in self.lines
        ]

    def variants(self, family: str) -> list[Variant]:
        """What the combinations make of one family, each once, in order."""
        found: dict[str, Variant] = {}
        for line, cfg in zip(self.lines, self._configs, strict=True):
            option = str(cfg.hydra.runtime.choices[family])
            typed = [word for word in line if word.lstrip("+").startswith(f"{family}.")]
            label = " ".join([option, *(word.lstrip("+")[len(family) + 1 :] for word in typed)])
            recipe = cfg.hydra.runtime.choices.get("recipe")
            variant = self._variant(family, option, _plain(cfg[family]), typed)
            if label in found and found[label].spec != variant.spec:
                label = f"{label} ({recipe})"
            found.setdefault(label, variant)
        return [replace(variant, label=label) for label, variant in found.items()]

    def _variant(
        self, family: str, option: str, spec: dict[str, Any], typed: Sequence[str]
    ) -> Variant:
        files = _chain(self._loader, family, option)
        conventions = tuple(
            _convention(field, value, files, any(_sets(word, family, field) for word in typed))
            for field, value in spec.items()
            if field != "name"
        )
        notes = tuple(file.notes for file in files if file.notes)
        return Variant(option, option, spec, notes, conventions)


def _expand(loader: "ConfigLoaderImpl", words: Sequence[str]) -> list[tuple[str, ...]]:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from agentic_rl import slips

    choices: list[list[str]] = []
    try:
        for override in OverridesParser.create(loader).parse_overrides(list(words)):
            if override.is_sweep_override():
                key = override.get_key_element()
                choices.append([f"{key}={value}" for value in override.sweep_string_iterator()])
            else:
                choices.append([str(override.input_line)])
    except HydraException as error:
        line = slips.Line(command="explain", overrides=tuple(words), loader=loader)
        raise ConfigError(slips.word(error, line)) from error
    return list(itertools.product(*choices))


def _plain(node: Any) -> dict[str, Any]:
    from omegaconf import OmegaConf

    container = OmegaConf.to_container(node, resolve=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def _sets(word: str, family: str, field: str) -> bool:
    key = word.lstrip("+").partition("=")[0]
    return key == f"{family}.{field}" or key.startswith(f"{family}.{field}.")


def _convention(field: str, value: Any, files: Sequence[_OptionFile], typed: bool) -> Convention:
    meaning = next((file.comments[field] for file in files if field in file.comments), "")
    setters = [file for file in files if field in file.values]
    if typed:
        source, reason = "command line", ""
    elif not setters or setters[-1].values[field] != value:
        source, reason = "recipe", ""
    else:
        source = setters[-1].option
        reason = setters[-1].comments.get(field, "") if len(setters) > 1 else ""
    return Convention(field, _worded(value), source, reason, meaning)


def _worded(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, list):
        return f"[{', '.join(map(_worded, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_worded(inner)}" for key, inner in value.items()) + "}"
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _chain(loader: "ConfigLoaderImpl", family: str, option: str) -> list[_OptionFile]:
    """The option's file after those it builds on."""
    from omegaconf import OmegaConf

    folders = [source.path for source in loader.get_sources() if source.scheme() == "file"]
    files = (Path(folder, family, f"{option}.yaml") for folder in folders)
    file = next((path for path in files if path.is_file()), None)
    if file is None:
        return []
    text = file.read_text(encoding="utf-8")
    content = OmegaConf.to_container(OmegaConf.create(text))
    assert isinstance(content, dict)
    defaults = content.pop("defaults", [])
    below = [
        ancestor
        for entry in defaults
        if isinstance(entry, str) and entry != "_self_"
        for ancestor in _chain(loader, family, entry)
    ]
    notes, comments = _comments(text)
    values = {str(key): value for key, value in content.items()}
    return [*below, _OptionFile(option, notes, comments, values)]


def _comments(text: str) -> tuple[str, dict[str, str]]:
    """The comment that the file begins with, and the one above each field."""
    found: dict[str, str] = {}
    block: list[str] = []
    for line in text.splitlines():
        key = re.match(r"(\w+):", line)
        if line.startswith("#"):
            block.append(line.lstrip("# ").rstrip())
        elif key:
            found[key[1]] = " ".join(block)
            block = []
    opening = found.pop("defaults", "")
    return found.pop("name", "") or opening, found
