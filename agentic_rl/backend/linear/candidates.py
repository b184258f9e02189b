"""What the policy chooses among: the listed actions, and a few refused or malformed replies."""

from typing import NamedTuple

from agentic_rl.backend.linear.history import History
from agentic_rl.types import View

IDLE = "I am not sure what to do next."
"""A reply without any action."""


class Candidate(NamedTuple):
    """A command and the form it is replied in: `listed`, `unlisted`, `bare` or `idle`."""

    command: str
    form: str


def candidates_of(view: View, history: History) -> list[Candidate]:
    """The listed actions first, in their order; never empty."""
    listed = [Candidate(action, "listed") for action in view.actions if action != "help"]
    refused = [
        Candidate(command, "unlisted")
        for command in dict.fromkeys([_stale(view), _imagined(history)])
        if command not in view.actions
    ]
    bare = Candidate(listed[0].command if listed else "look", "bare")
    return [*listed, *refused, bare, Candidate(IDLE, "idle")]


def _stale(view: View) -> str:
    """The command given last: what it asked for may be gone."""
    given = [action for _, action in view.pairs[-1:] if action is not None]
    return given[0] if given else "open the door"


def _imagined(history: History) -> str:
    """What a hasty player would try: to take the thing from wherever it stands."""
    thing = history.goal.target or "thing"
    name = thing if " " in thing else f"{thing} 1"
    return f"take {name} from {history.place or 'floor 1'}"
