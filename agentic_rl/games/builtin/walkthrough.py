"""The shortest command list of a game, built together with it: no planner is needed."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agentic_rl.games.builtin.furnish import Thing, UnfitError, Wish
from agentic_rl.games.builtin.rooms import Location, Receptacle
from agentic_rl.games.builtin.tables import LAMP, LOOK, STATIONS, TWO


@dataclass(frozen=True, slots=True)
class Deed:
    """Do `verb` with `thing` at receptacle number `where`."""

    verb: str
    where: int
    thing: Thing


def shortest(
    wish: Wish,
    things: Sequence[Thing],
    receptacles: Sequence[Receptacle],
    start: Location,
    called: Callable[[str], str],
) -> tuple[str, ...]:
    """Tries every choice of copies and places, a few dozen at most; the first of equals wins."""
    plans = (
        tuple(_commands(deeds, receptacles, start, called))
        for deeds in _choices(wish, things, receptacles)
    )
    best = min(plans, key=len, default=None)
    if best is None:
        raise UnfitError("no way to solve it")
    return best


def _choices(
    wish: Wish, things: Sequence[Thing], receptacles: Sequence[Receptacle]
) -> Iterator[list[Deed]]:
    targets = [thing for thing in things if thing.kind == wish.kind]
    if wish.task == LOOK:
        lamps = [thing for thing in things if thing.kind == LAMP]
        for target, lamp in itertools.product(targets, lamps):
            yield [Deed("take", target.where, target), Deed("use", lamp.where, lamp)]
        return
    places = [i for i, receptacle in enumerate(receptacles) if receptacle.kind == wish.place]
    if wish.task == TWO:
        for (one, other), place in itertools.product(itertools.permutations(targets, 2), places):
            yield [
                Deed("take", one.where, one),
                Deed("move", place, one),
                Deed("take", other.where, other),
                Deed("move", place, other),
            ]
        return
    for target, treatment, place in itertools.product(
        targets, _treatments(wish, receptacles), places
    ):
        treated = [Deed(verb, station, target) for verb, station in treatment]
        yield [Deed("take", target.where, target), *treated, Deed("move", place, target)]


def _treatments(wish: Wish, receptacles: Sequence[Receptacle]) -> list[list[tuple[str, int]]]:
    """The ways to clean, heat or cool: one per station, or the single way to do nothing."""
    if wish.task not in STATIONS:
        return [[]]
    _, station, verb = STATIONS[wish.task]
    return [[(verb, i)] for i, receptacle in enumerate(receptacles) if receptacle.kind == station]


def _commands(
    deeds: Sequence[Deed],
    receptacles: Sequence[Receptacle],
    start: Location,
    called: Callable[[str], str],
) -> Iterator[str]:
    at, opened = start, set()
    for deed in deeds:
        receptacle = receptacles[deed.where]
        place, thing = called(receptacle.id), called(deed.thing.id)
        if receptacle.location != at:
            yield f"go to {place}"
            at = receptacle.location
        if deed.verb in ("take", "move") and receptacle.openable and deed.where not in opened:
            yield f"open {place}"
            opened.add(deed.where)
        yield {
            "take": f"take {thing} from {place}",
            "move": f"move {thing} to {place}",
            "use": f"use {thing}",
        }.get(deed.verb, f"{deed.verb} {thing} with {place}")
