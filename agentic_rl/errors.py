"""Users' slips. Each prints as one line: what, where, what to type; a bug keeps its traceback."""

import difflib
from collections.abc import Iterable


class AgenticRLError(Exception):
    """Anything that the person at the keyboard can put right."""


class UsageError(AgenticRLError):
    """A command line that cannot be read: an unknown command or flag, a missing argument."""


class ConfigError(AgenticRLError):
    """A key, type or value of the configuration that cannot be used."""


class UnknownComponentError(ConfigError):
    """A name that no component, recipe or option carries."""


class GamesError(AgenticRLError):
    """Games that are missing, unreadable or not what was asked for."""


class RunFolderError(AgenticRLError):
    """A run folder or a checkpoint that cannot be used as asked."""


class BackendError(AgenticRLError):
    """A backend that cannot do what the recipe asks, or whose service failed.

    `hopeless` where nothing that is sent from now on can succeed: the run stops at once.
    """

    hopeless = False


class EnvError(AgenticRLError):
    """An environment that failed: it ends its own trajectory and counts as no task failure."""


class IntegrityError(AgenticRLError):
    """Data that contradicts itself, such as a group whose branches start differently."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the nearest known name, or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=8)
    return f" Did you mean '{min(near, key=lambda other: _edits(name, other))}'?" if near else ""


def _edits(one: str, other: str) -> int:
    """Letters added, left out or replaced, or two neighbours swapped (Damerau, Levenshtein)."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        here = [row]
        for column, there in enumerate(other, start=1):
            least = min(above[column] + 1, here[-1] + 1, above[column - 1] + (letter != there))
            if row > 1 and column > 1 and one[row - 2 : row] == there + other[column - 2]:
                least = min(least, before[column - 2] + 1)
            here.append(least)
        before, above = above, here
    return above[-1]
