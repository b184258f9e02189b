"""What a view's text says so far: the task's words, what is held, seen, opened and done."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from agentic_rl.types import View

_NOT_NOUNS = frozenset(
    re.findall(
        r"\w+",
        "a an and at clean cleaned cold cool cooled examine find from heat heated hot in it light"
        " look move of on put some take task the them then to turn two under use warm with your",
    )
)
_KINDS = {
    "two": "two",
    "examine": "look",
    "look": "look",
    "clean": "clean",
    "heat": "heat",
    "hot": "heat",
    "cool": "cool",
    "cold": "cool",
}
_NAME = re.compile(r"[a-z]+(?: \d+)?")
_THING = re.compile(r"\ban? ([a-z]+ \d+)")
_PLACE = re.compile(r"[Oo]n the ([a-z]+ \d+), you see|The ([a-z]+ \d+) is (open|closed)")
_SEPARATORS = (" from ", " to ", " with ")
NOTHING = "Nothing happens."


class Command(NamedTuple):
    """A command's parts; `go to X` and `open X` have a place, `use X` has a thing."""

    verb: str
    thing: str
    place: str

    @property
    def type(self) -> str:
        """Of its place, or of its thing where it names no place."""
        return (self.place or self.thing).split(" ")[0]


@lru_cache(maxsize=65536)
def command_of(text: str) -> Command:
    """Reads a command by its form alone; whatever the form, it has a verb."""
    verb, _, rest = text.partition(" ")
    if verb == "go":
        return Command(verb, "", rest.removeprefix("to "))
    if verb in ("open", "close"):
        return Command(verb, "", rest)
    for separator in _SEPARATORS:
        thing, found, place = rest.partition(separator)
        if found:
            return Command(verb, thing, place)
    return Command(verb, rest, "")


@dataclass(frozen=True, slots=True)
class Goal:
    """The task's kind and its nouns, each a type (`apple`) or a name (`box 3`)."""

    kind: str
    target: str
    goal_place: str

    def match(self, name: str) -> str:
        """`t` for what the task is about, `d` for where it is to go, `x` for anything else."""
        if not name:
            return "-"
        named = (name, name.split(" ")[0])
        if self.target in named:
            return "t"
        return "d" if self.goal_place in named else "x"


@lru_cache(maxsize=4096)
def goal_of(task: str) -> Goal:
    names = _NAME.findall(task.lower())
    nouns = [name for name in names if name.split(" ")[0] not in _NOT_NOUNS]
    kinds = [_KINDS[name] for name in names if name in _KINDS]
    kind = kinds[0] if kinds else "find" if len(nouns) < 2 else "put"
    return Goal(kind, nouns[0] if nouns else "", nouns[-1] if len(nouns) > 1 else "")


class Sight(NamedTuple):
    """What one observation shows: things at a place, and whether the place is closed."""

    place: str
    closed: bool
    things: tuple[str, ...]


@lru_cache(maxsize=65536)
def sight_of(observation: str) -> Sight | None:
    match = _PLACE.search(observation)
    if match is None:
        return None
    place = match.group(1) or match.group(2)
    return Sight(place, match.group(3) == "closed", tuple(_THING.findall(observation, match.end())))


@dataclass(slots=True)
class History:
    """The facts that a view's pairs hold, oldest first; a window holds fewer."""

    goal: Goal
    place: str = ""
    held: str = ""
    last: str = "none"
    refused: bool = False
    given: dict[str, int] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    where: dict[str, str] = field(default_factory=dict)
    processed: set[tuple[str, str]] = field(default_factory=set)
    delivered: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, view: View) -> "History":
        history = cls(goal_of(view.task))
        results = [*(observation for observation, _ in view.pairs), view.observation][1:]
        for (_, action), result in zip(view.pairs, results, strict=True):
            history.add(action, result)
        return history

    def add(self, action: str | None, result: str) -> None:
        """One action (None: the reply held none) and the observation that followed it."""
        if action is None:
            self.last, self.refused = "none", True
            return
        command = command_of(action)
        self.given[action] = self.given.get(action, 0) + 1
        self.last, self.refused = command.verb, result.strip() == NOTHING
        if self.refused:
            return
        self._move(command, result)
        sight = sight_of(result)
        if sight is not None:
            self._see(sight)

    def _move(self, command: Command, result: str) -> None:
        verb, thing, place = command
        if verb == "go":
            self.place = place
            self.visits[place] = self.visits.get(place, 0) + 1
        elif verb == "take" and "pick up" in result:
            self.held = thing
            self.where.pop(thing, None)
            self.delivered.discard(thing)
        elif verb == "move" and "You move" in result:
            self.held = ""
            self.where[thing] = place
            if self.goal.match(thing) == "t" and self.goal.match(place) == "d":
                self.delivered.add(thing)
        elif verb in ("clean", "heat", "cool") and result.startswith(f"You {verb}"):
            self.processed.add((thing, verb))

    def _see(self, sight: Sight) -> None:
        if sight.closed:
            self.closed.add(sight.place)
            return
        self.closed.discard(sight.place)
        for thing in sight.things:
            self.where[thing] = sight.place
