"""How far a game has come: which parts of its goal hold, and how many commands are still needed.

This knows ALFWorld's rules: one hand, one command to any other place. The shortest remaining plan
is found by trying every choice that a plan consists of (what to take, where to treat it, where to
put it, where to lay down what is in the hand); the order of the rest is given. It grades estimators
and reaches no prompt.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from agentic_rl.env.engine import Game
from agentic_rl.env.engine.runtime import State
from agentic_rl.env.goals import TREATMENTS, Look, Place, goal_of
from agentic_rl.env.room import Layout, Room

MOST_KNOWN = 50_000


@dataclass(frozen=True, slots=True)
class Progress:
    """`parts` are (wording, holds); `remaining` is None where no plan is known."""

    parts: tuple[tuple[str, bool], ...]
    remaining: int | None


class ProgressMeter:
    """Measures the states of one game; every state is worked out once."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.goal = goal_of(game)
        self._known: dict[int, Progress] = {}
        self._layout = Layout(game)

    def __call__(self, state: State) -> Progress:
        known = self._known.get(state[-1])
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[state[-1]] = self._measure(state)
        return known

    def _measure(self, state: State) -> Progress:
        won = self.game.won(state)
        if self.goal is None:
            return Progress((("the goal", won),), 0 if won else None)
        room = Room(self.game, state, self._layout)
        if isinstance(self.goal, Place):
            parts, lengths = _place_parts(room, self.goal), _placing(room, self.goal)
        else:
            parts, lengths = _look_parts(room, self.goal), _looking(room, self.goal)
        return Progress(parts, 0 if won else min(lengths, default=None))


def shortest_by_search(
    game: Game, start: State, most_steps: int, most_states: int = 20_000
) -> int | None:
    """The same by breadth-first search over all commands: slow, for any game; None: not found."""
    if game.won(start):
        return 0
    queue: deque[tuple[State, int]] = deque([(start, 1)])
    seen = {start[-1]}
    while queue:
        state, steps = queue.popleft()
        for operator in game.commands(state).values():
            after = game.act(state, operator)
            if after[-1] in seen:
                continue
            if game.won(after):
                return steps
            if len(seen) >= most_states:
                return None
            seen.add(after[-1])
            if steps < most_steps:
                queue.append((after, steps + 1))
    return None


# -- the parts of a goal


def _place_parts(room: Room, goal: Place) -> tuple[tuple[str, bool], ...]:
    things = room.things(goal.thing)
    inside = max(
        (len(room.inside(place) & things) for place in room.receptacles(goal.receptacle)), default=0
    )
    name, where = _word(goal.thing), _word(goal.receptacle)
    parts = [(f"{n} {name} in one {where}", inside >= n) for n in range(1, goal.count + 1)]
    if goal.treatment:
        treated = bool(things & room.having(goal.treatment))
        parts.insert(0, (f"a {name} {goal.treatment}", treated))
    return tuple(parts)


def _look_parts(room: Room, goal: Look) -> tuple[tuple[str, bool], ...]:
    held = room.hand in room.things(goal.thing)
    lit = any(
        room.at(place) == room.here
        for lamp in room.things(goal.lamp) & room.having("istoggled")
        for place in room.places(lamp)
    )
    return (
        (f"a {_word(goal.thing)} in hand", held),
        (f"beside a {_word(goal.lamp)} that is on", lit),
    )


def _word(kind: str) -> str:
    return kind.removesuffix("type")


# -- the shortest plan: each yields the lengths of plans, the shortest among them


@dataclass(frozen=True, slots=True)
class _Route:
    """Places to visit in order, receptacles to open on the way, and the other commands."""

    stops: tuple[int, ...]
    opens: frozenset[int]
    acts: int

    def then(self, stop: int, acts: int, opens: frozenset[int] = frozenset()) -> "_Route":
        return _Route((*self.stops, stop), self.opens | opens, self.acts + acts)

    @property
    def length(self) -> int:
        pairs = zip(self.stops, self.stops[1:], strict=False)
        return sum(a != b for a, b in pairs) + len(self.opens) + self.acts


def _taken(room: Room, thing: int, special: set[int]) -> Iterator[tuple[_Route, int | None]]:
    """Ways to have a thing in the hand, with the receptacle it came from."""
    start = _Route((room.here,), frozenset(), 0)
    if room.hand == thing:
        yield start, None
        return
    for source in room.sources(thing):
        stop = room.at(source)
        for freed in _freed(room, start, special | {stop}, source):
            yield freed.then(stop, 1, room.closed(source)), source


def _freed(room: Room, start: _Route, special: set[int], source: int) -> Iterator[_Route]:
    """Ways to have an empty hand; it is laid down where a plan passes anyway, or anywhere else."""
    if room.hand is None:
        yield start
        return
    accepting = room.accepting(room.hand)
    for place in room.representatives(accepting, special | {room.here}, {source}):
        yield start.then(room.at(place), 1, room.closed(place))


def _placing(room: Room, goal: Place) -> Iterator[int]:
    if goal.count == 2:
        return _placing_two(room, goal)
    return _placing_one(room, goal)


def _placing_one(room: Room, goal: Place) -> Iterator[int]:
    able, tools = TREATMENTS.get(goal.treatment, ("", ()))
    goals = room.receptacles(goal.receptacle)
    stations = [place for kind in tools for place in room.receptacles(kind)]
    special = {room.at(place) for place in stations}
    traits = [able, goal.treatment] if able else []
    for thing in room.distinct(room.things(goal.thing), 1, "pickupable", *traits):
        if able and thing not in room.having(able):
            continue
        treated = not able or thing in room.having(goal.treatment)
        passed = special | room.stops_of(thing) | {room.here}
        places = room.representatives(goals, passed, room.places(thing))
        for route, source in _taken(room, thing, special | {room.at(place) for place in places}):
            routes = [route] if treated else [route.then(room.at(s), 1) for s in stations]
            # It may lie in several receptacles at once, and is then still in the others.
            lies = any(place in goals and place != source for place in room.places(thing))
            for tried in routes:
                if lies:
                    yield tried.length
                for place in room.accepting(thing).intersection(places):
                    yield tried.then(room.at(place), 1, room.closed(place)).length


def _placing_two(room: Room, goal: Place) -> Iterator[int]:
    things = room.things(goal.thing)
    goals = room.receptacles(goal.receptacle)
    stops = {stop for thing in things for stop in room.stops_of(thing)}
    known = {place for thing in things for place in room.places(thing)}
    for place in room.representatives(goals, stops | {room.here}, known):
        outside = things - room.inside(place)
        missing = max(goal.count - len(things) + len(outside), 0)
        special = {room.at(place)}
        for chosen in permutations(room.distinct(outside, missing, "pickupable"), missing):
            yield from _delivered(room, chosen, place, special)


def _delivered(room: Room, things: tuple[int, ...], place: int, special: set[int]) -> Iterator[int]:
    """All things brought to one place, one after the other, in this order."""
    first, *others = things
    if place not in room.accepting(first) or (room.hand in others):
        return
    for route, _ in _taken(room, first, special):
        routes = [route.then(room.at(place), 1, room.closed(place))]
        for thing in others:
            routes = [
                done.then(room.at(source), 1, room.closed(source)).then(room.at(place), 1)
                for done in routes
                for source in room.sources(thing)
            ]
        yield from (done.length for done in routes)


def _looking(room: Room, goal: Look) -> Iterator[int]:
    lamps = [(lamp, place) for lamp in room.things(goal.lamp) for place in room.places(lamp)]
    special = {room.at(place) for _, place in lamps}
    for thing in room.distinct(room.things(goal.thing), 1, "pickupable"):
        for route, _ in _taken(room, thing, special):
            for lamp, place in lamps:
                on = lamp in room.having("istoggled")
                yield route.then(room.at(place), 0 if on else 1).length
