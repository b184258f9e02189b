"""A state of an ALFWorld game as things and places; all by number."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from functools import cached_property

from agentic_rl.env.engine import Game
from agentic_rl.env.engine.runtime import State

NOWHERE = -1


class Room:
    """One state. Every receptacle stands at one location and is of one type."""

    def __init__(self, game: Game, state: State, layout: "Layout") -> None:
        self._game, self._state = game, state
        self._static = layout
        self._having: dict[str, set[int]] = {}

    def _facts(self, predicate: str) -> list[tuple[int, ...]]:
        return list(self._game.facts(self._state, predicate))

    @cached_property
    def here(self) -> int:
        return next((fact[1] for fact in self._facts("atlocation")), NOWHERE)

    @cached_property
    def hand(self) -> int | None:
        return next((fact[1] for fact in self._facts("holds")), None)

    @cached_property
    def _places(self) -> dict[int, set[int]]:
        places: dict[int, set[int]] = {}
        for thing, place in self._facts("inreceptacle"):
            places.setdefault(thing, set()).add(place)
        return places

    @cached_property
    def _opened(self) -> set[int]:
        return {fact[0] for fact in self._facts("opened")}

    def having(self, predicate: str) -> set[int]:
        known = self._having.get(predicate)
        if known is None:
            known = self._having[predicate] = {fact[0] for fact in self._facts(predicate)}
        return known

    def distinct(self, things: Iterable[int], count: int, *having: str) -> list[int]:
        """At most `count` of the things that are alike: in the same places, of the same traits."""
        kept: list[int] = []
        alike: Counter[Hashable] = Counter()
        for thing in sorted(things):
            traits = tuple(thing in self.having(name) for name in having)
            key = (thing == self.hand, frozenset(self.places(thing)), traits)
            alike[key] += 1
            if alike[key] <= count:
                kept.append(thing)
        return kept

    def things(self, kind: str) -> set[int]:
        return self._static.things.get(kind, set())

    def receptacles(self, kind: str) -> set[int]:
        return self._static.receptacles.get(kind, set())

    def places(self, thing: int) -> set[int]:
        """The receptacles that a thing is in: sometimes several."""
        return self._places.get(thing, set())

    def inside(self, place: int) -> set[int]:
        return {thing for thing, places in self._places.items() if place in places}

    def at(self, place: int) -> int:
        return self._static.location.get(place, NOWHERE)

    def sources(self, thing: int) -> set[int]:
        """Where a thing can be taken from."""
        if thing not in self._static.movable:
            return set()
        return {place for place in self.places(thing) if self.at(place) != NOWHERE}

    def stops_of(self, thing: int) -> set[int]:
        return {self.at(place) for place in self.places(thing)}

    def closed(self, place: int) -> frozenset[int]:
        """The receptacle itself where it has to be opened first."""
        shut = place in self._static.openable and place not in self._opened
        return frozenset((place,)) if shut else frozenset()

    def accepting(self, thing: int) -> set[int]:
        """The receptacles that a thing can be put into."""
        return self._static.accepting.get(thing, set())

    def representatives(
        self, places: Iterable[int], special: Collection[int], own: Collection[int]
    ) -> list[int]:
        """Of places that no plan passes anyway one that is open and one that is closed will do."""
        kept: list[int] = []
        others: dict[bool, int] = {}
        for place in sorted(places):
            if self.at(place) == NOWHERE:
                continue
            if place in own or self.at(place) in special:
                kept.append(place)
            else:
                others.setdefault(bool(self.closed(place)), place)
        return kept + list(others.values())


class Layout:
    """What no command changes."""

    def __init__(self, game: Game) -> None:
        def facts(predicate: str) -> list[tuple[int, ...]]:
            return list(game.facts(game.start, predicate))

        self.location = {fact[0]: fact[1] for fact in facts("receptacleatlocation")}
        self.openable = {fact[0] for fact in facts("openable")}
        self.movable = {fact[0] for fact in facts("pickupable")}
        self.things = _grouped(facts("objecttype"), game)
        self.receptacles = _grouped(facts("receptacletype"), game)
        holds = {(game.ids[place], game.ids[thing]) for place, thing in facts("cancontain")}
        self.accepting = {
            thing: {
                place
                for place_kind, places in self.receptacles.items()
                if (place_kind, kind) in holds
                for place in places
            }
            for kind, things in self.things.items()
            for thing in things
        }


def _grouped(facts: list[tuple[int, ...]], game: Game) -> dict[str, set[int]]:
    groups: dict[str, set[int]] = {}
    for number, kind in facts:
        groups.setdefault(game.ids[kind], set()).add(number)
    return groups
