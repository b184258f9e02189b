"""OmegaConf's messages in plain words, and the nearest key to one that does not exist."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

ALIASES = {
    "learning_rate": "lr",
    "num_generations": "group_size",
    "rollouts_per_prompt": "group_size",
    "batch_size": "games_per_update",
    "epochs": "updates",
    "steps": "updates",
    "num_steps": "updates",
    "resume_from": "checkpoint",
    "max_tokens": "rollout.max_trajectory_tokens",
    "max_turns": "rollout.max_steps",
    "workers": "env.workers",
    "model": "backend.model",
}
"""Other code bases' words, and ours."""

_KINDS = {"Float": "a number", "Integer": "a whole number", "Boolean": "true or false"}


def near_key(key: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?`, or an empty string: the same last word elsewhere, else a like name."""
    names = list(known)
    leaf = key.rpartition(".")[2]
    found = [name for name in names if name != key and name.rpartition(".")[2] == leaf]
    if not found:
        near = get_close_matches(key, [*names, *ALIASES], n=1)
        leaves = get_close_matches(leaf, [name.rpartition(".")[2] for name in names], n=1)
        ours = [ALIASES.get(name, name) for name in near]
        found = [name for name in ours if name != key] or [
            name for name in names if name.rpartition(".")[2] in leaves
        ]
    if not found:
        return ""
    return f" Did you mean {' or '.join(repr(name) for name in found[:2])}?"


def plain(message: str, key: str) -> str:
    """`key`'s value is refused with `message`: the same in one line of plain words."""
    for pattern, reply in _MESSAGES:
        match = re.search(pattern, message)
        if match:
            return reply(key, match)
    first = next(iter(message.splitlines()), "")
    return f"{key}: {first}" if key else first


def _not_a(key: str, match: re.Match[str]) -> str:
    kind = _KINDS.get(match["kind"], match["kind"])
    if not match["value"]:
        return f"{key}= is empty: it takes {kind}"
    return f"{key} takes {kind}, not '{match['value']}'"


def _section(key: str, match: re.Match[str]) -> str:
    return f"{key} is a section, not a value: set its keys, such as {key}.NAME=VALUE"


def _list(key: str, match: re.Match[str]) -> str:
    return f"{key} takes a list, in brackets: {key}=[a,b]"


_MESSAGES: tuple[tuple[str, Callable[[str, re.Match[str]], str]], ...] = (
    (r"Value '(?P<value>.*)' of type '\w+' could not be converted to (?P<kind>\w+)", _not_a),
    (
        r"Value '(?P<value>.*)' is not a valid (?:bool|str)",
        lambda key, match: f"{key} takes true or false, not '{match['value']}'",
    ),
    (
        r"no viable alternative at input '(?P<text>.*)'",
        lambda key, match: f"{key}: cannot read {match['text']}",
    ),
    (r"is not Optional", lambda key, match: f"{key} cannot be null"),
    (r"is not a ListConfig|(?:Cannot assign|convert) \w+ to List", _list),
    (r"Invalid type assigned|Cannot assign \w+ to Dict|to Dict\[", _section),
    (r"Cannot convert '(?P<kind>\w+)' to string", lambda key, match: f"{key} takes text"),
    (
        r"Interpolation key '(?P<name>.*?)' not found",
        lambda key, match: f"{key}: ${{{match['name']}}} names no key",
    ),
    (
        r"Environment variable '(?P<name>.*?)' not found",
        lambda key, match: f"{key}: the environment variable {match['name']} is not set",
    ),
    (
        r"Unsupported interpolation type (?P<name>\S+)",
        lambda key, match: f"{key}: ${{{match['name']}:...}} is no resolver",
    ),
)
