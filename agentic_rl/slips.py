"""Hydra's messages in one line each: what, where, a near match, what to type."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from agentic_rl.config import FAMILIES, list_keys, schema_keys
from agentic_rl.errors import ConfigError, did_you_mean
from agentic_rl.searchpath import RECIPES, RecipeSource, short
from agentic_rl.wording import near_key, plain

_PACKAGE = "the first line of a recipe is `# @package _global_`"
_DELETABLE = FAMILIES  # options that a recipe sets for another component than the one chosen
_EXTRAS = {"joblib": "joblib", "submitit_local": "submitit", "submitit_slurm": "submitit"}
_EXTRAS["ray"] = "ray"


@dataclass(frozen=True)
class Line:
    """What was typed, and where its names are looked up."""

    command: str
    overrides: tuple[str, ...]
    loader: ConfigLoaderImpl


def check(line: Line) -> None:
    """ConfigError for what Hydra would take in silence or answer with wrong advice."""
    for override in OverridesParser.create().parse_overrides(list(line.overrides)):
        if override.is_hydra_override() or override.is_sweep_override():
            continue
        if override.is_delete() and override.key_or_group.partition(".")[0] not in _DELETABLE:
            raise ConfigError(f"{override.input_line}: keys are not deleted; set a value")
        if override.is_delete() and "." not in override.key_or_group:
            group = override.key_or_group
            raise ConfigError(f"{override.input_line}: a {group} is needed; choose {group}=NAME")
        if not override.key_or_group:
            raise ConfigError(f"'{override.input_line}' has no key")
        if override.key_or_group == "command":
            raise ConfigError("the first word says the command: `agentic-rl eval key=value ...`")
        if "@" in override.get_key_element():
            raise ConfigError(f"{override.input_line}: a group is chosen by its name alone, no @")
        if line.loader.repository.group_exists(override.key_or_group):
            _check_group(override, line)


def _check_group(override: Override, line: Line) -> None:
    group, value = override.key_or_group, override.value()
    if not isinstance(value, str | list) or value in ("", []):
        options = line.loader.get_group_options(group)
        raise ConfigError(f"{override.input_line} names no {group}. Known: {', '.join(options)}.")
    shown = str(override.input_line).lstrip("+").partition("=")[2]
    name = Path(shown).stem
    if group == RECIPES and shown != name and name in line.loader.get_group_options(RECIPES):
        raise ConfigError(f"a recipe is named without folder and ending: type +{group}={name}")
    if group == RECIPES and not override.is_add():
        raise ConfigError(f"a recipe is added with one plus sign: type +{group}={shown}")
    if group != RECIPES and (override.is_add() or override.is_force_add()):
        raise ConfigError(f"{group} is there already: type {group}={shown}, without a plus sign")


def word(error: BaseException, line: Line) -> str:
    """One line for an error of composing; an unknown error keeps its own first line."""
    if isinstance(error, MissingConfigException):
        return _missing(error, line)
    if isinstance(error, OverrideParseException):
        return _unreadable(error)
    if isinstance(error, yaml.YAMLError):
        return _not_yaml(error)
    text = str(error)
    where = re.match(r"(?:In|Invalid defaults list in) '?(?P<name>[\w/.-]+)'?[:,]\s*", text)
    prefix = f"{_file(where['name'], line)}: " if where else ""
    if re.search(r"@recipe\.|Key '_\w+' not in 'Experiment'", text):
        return prefix + _PACKAGE
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    cause = cause or error.__context__
    if isinstance(cause, OmegaConfBaseException):
        return prefix + _omegaconf(cause, line, bool(prefix))
    for pattern, reply in _REPLIES:
        match = re.search(pattern, text)
        if match:
            return prefix + reply(match, line)
    return prefix + " ".join(text[where.end() if where else 0 :].split("\n")[0].split())


def _missing(error: MissingConfigException, line: Line) -> str:
    path = str(error.missing_cfg_file or "")
    group, _, name = path.rpartition("/")
    where = re.match(r"In '(?P<name>.*?)':", str(error))
    asker = where["name"] if where else ""
    prefix = f"{_file(asker, line)}: " if asker.startswith(RECIPES) else ""
    if not group:
        known = list(line.loader.get_group_options(""))
        near = did_you_mean(name, known)
        return f"{prefix}no config '{name}' is on the search path.{near} See --config-dir."
    if name in _EXTRAS and group == "hydra/launcher":
        return f"{group}={name} is not installed: pip install 'agentic-rl[{_EXTRAS[name]}]'"
    options = list(error.options or line.loader.get_group_options(group))
    kind = "option of " + group if group.startswith("hydra") else group
    return (
        f"{prefix}unknown {kind} '{name}'.{did_you_mean(name, options)}"
        f" Known: {', '.join(options) or 'none'}."
    )


def _unreadable(error: OverrideParseException) -> str:
    typed = str(error.override)
    key, equals, value = typed.partition("=")
    if not equals:
        return f"'{typed}' is no key=value"
    if value.startswith("="):
        return f"'{typed}' has one = too many: type {key}={value.lstrip('=')}"
    if not re.fullmatch(r"[+~]{0,2}[\w./@:-]+", key):
        return f"cannot read '{typed}': the key '{key}' has a sign that no key has"
    return f"cannot read '{typed}': quote the value, twice for the shell: '{key}=\"{value}\"'"


def _not_yaml(error: Any) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"{short(Path(mark.name))}, line {mark.line + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or str(error)
    return f"{where}not YAML: {' '.join(str(problem).split())}"


def _omegaconf(error: OmegaConfBaseException, line: Line, in_file: bool) -> str:
    key, message = str(error.full_key or ""), str(error.msg or error)
    if isinstance(error, ConfigAttributeError | ConfigKeyError):
        return _unknown_key(error, line)
    if in_file and not key:
        return "a recipe holds `key: value` lines, not a list"
    if in_file and key == RECIPES:
        return _PACKAGE
    if in_file and "Cannot assign str to Dict" in message:
        return f"to choose one, put `- override /{key}: NAME` under `defaults:`, not `{key}: NAME`"
    typed = next((word for word in line.overrides if word.startswith(f"{key}=")), "")
    if typed and "is not a ListConfig" in message:
        return f"{key} takes a list, in brackets: type '{key}=[{typed.partition('=')[2]}]'"
    return plain(message, key)


def _unknown_key(error: OmegaConfBaseException, line: Line) -> str:
    key, node = str(error.full_key), error.parent_node
    if key == RECIPES or key.startswith(f"{RECIPES}."):
        return _PACKAGE
    parent, _, leaf = key.rpartition(".")
    if not parent:
        near = near_key(key, schema_keys())
        return f"no key '{key}'.{near} See `agentic-rl --cfg job` for all keys."
    siblings = [str(name) for name in node] if isinstance(node, DictConfig) else []
    near = near_key(key, [f"{parent}.{name}" for name in siblings])
    if parent not in FAMILIES or not isinstance(node, DictConfig):
        return f"no key '{key}'.{near} Keys of {parent}: {', '.join(siblings)}."
    typed = [text for text in line.overrides if re.match(rf"{parent}=[^,]+$", text)]
    chosen = typed[-1] if typed else f"{parent}={node.get('name')}"
    owners = [f"{parent}={option}" for option in _options_with(leaf, parent, line)]
    others = f" Options that have it: {', '.join(owners)}." if owners else ""
    near = "" if owners else near
    return f"{chosen} has no key '{key}'.{near} Keys of {chosen}: {', '.join(siblings)}.{others}"


def _options_with(key: str, family: str, line: Line) -> list[str]:
    """The family's options whose YAML sets the key."""
    found = []
    for option in line.loader.get_group_options(family):
        try:
            result = line.loader.repository.load_config(f"{family}/{option}")
        except (ConfigError, OmegaConfBaseException, yaml.YAMLError, ValueError):
            continue  # damaged itself: another slip than the one to be worded
        if result is not None and key in result.config:
            found.append(option)
    return found


def _ambiguous(match: re.Match[str], line: Line) -> str:
    typed = match["typed"]
    key, _, values = typed.partition("=")
    if key in list_keys():
        return f"{key} takes a list, in brackets: type {shlex.quote(f'{key}=[{values}]')}"
    return f"{typed} lists several values: type {_swept(line)} for one run each"


def _needs_sweep(match: re.Match[str], line: Line) -> str:
    return f"{match['typed']} stands for several values: type {_swept(line)} for one run each"


def _swept(line: Line) -> str:
    command = "sweep" if line.command in ("", "train", "sweep") else f"{line.command} -m"
    return f"`agentic-rl {command} {shlex.join(line.overrides)}`"


def _in_list(match: re.Match[str], line: Line) -> str:
    inside = [typed for typed in line.overrides if f".{match['key']}" in typed]
    return f"{' '.join(inside)}: '{match['key']}' is no key, its parent is a list"


def _without_override(match: re.Match[str], line: Line) -> str:
    named = [typed.partition("=")[2] for typed in line.overrides if typed.startswith("+recipe=")]
    where = f"{_file(f'{RECIPES}/{named[0]}', line)}: " if len(named) == 1 else ""
    key = match["key"]
    return f"{where}write `- override /{key}: NAME` under `defaults:`, not `- /{key}: NAME`"


def _no_group(match: re.Match[str], line: Line) -> str:
    return f"no group '{match['key']}'.{did_you_mean(match['key'], line.loader.list_groups(''))}"


_REPLIES: tuple[tuple[str, Callable[[re.Match[str], Line], str]], ...] = (
    (r"Ambiguous value for argument '(?P<typed>.*)'", _ambiguous),
    (r"Sweep parameters '(?P<typed>.*)' requires", _needs_sweep),
    (r"invalid literal for int\(\) with base 10: '(?P<key>.*)'", _in_list),
    (r"Multiple values for (?P<key>\S+)\.", _without_override),
    (r"^(?P<key>\S+) appears more than once in the final defaults", _without_override),
    (r"Could not override '(?P<key>.*?)'\.? No match in the defaults list", _no_group),
    (r"but config group '(?P<key>.*?)' does not exist", _no_group),
    (
        r"Could not append to config. An item is already at '(?P<key>.*?)'",
        lambda match, line: f"{match['key']} is there already: leave out the plus sign",
    ),
    (
        r"Override '(?P<first>.*?) : .*' is defined before '(?P<second>\S+):",
        lambda match, line: (
            f"`override` lines come last under `defaults:`, and {match['second']} needs one too:"
            f" `- override /{match['second'].lstrip('/')}: NAME`"
        ),
    ),
)


def _file(name: str, line: Line) -> str:
    """The YAML file behind a config's name, as the person would type it."""
    for source in line.loader.get_sources():
        if source.scheme() in ("file", RecipeSource.scheme()) and source.is_config(name):
            inner = name.partition("/")[2] if source.scheme() == RecipeSource.scheme() else name
            return short(Path(source.path, f"{inner}.yaml"))
    return name
