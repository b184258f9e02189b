"""Puts things into a room: fixtures, the copies asked for, and everything else."""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from agentic_rl.games.builtin.difficulty import Difficulty
from agentic_rl.games.builtin.naming import object_id
from agentic_rl.games.builtin.rooms import Receptacle, Room
from agentic_rl.games.builtin.shipped import Shipped
from agentic_rl.games.builtin.tables import (
    CROWD,
    CROWD_ELSEWHERE,
    EXTRA_HOMES,
    FEW,
    FIXED_ON,
    LAMP,
    LOOK,
    OWN_PLACE,
    PICK,
    PICKUPABLE,
    ROOM_FOR,
    ROOM_FOR_ELSEWHERE,
    SINGLE,
    STATIONS,
    TWO,
)


class UnfitError(Exception):
    """This room cannot host this game; another choice may."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a game asks for; `place` is a kind of receptacle, or the lamp."""

    task: str
    kind: str
    place: str


@dataclass(frozen=True, slots=True)
class Thing:
    """An object; `where` indexes the game's receptacles."""

    kind: str
    where: int
    id: str = ""


def trimmed(shipped: Shipped, room: Room, wish: Wish, most: int | None) -> tuple[Receptacle, ...]:
    """The receptacles kept under a cap: what the task needs first, then one of each kind."""
    receptacles = list(room.receptacles)
    if not most or len(receptacles) <= most:
        return room.receptacles
    random.Random(f"trim/{room.scene}/{most}").shuffle(receptacles)
    needed = _needed_kinds(shipped, receptacles, wish)
    seen: set[str] = set()
    first: list[Receptacle] = []
    rest: list[Receptacle] = []
    for receptacle in sorted(receptacles, key=lambda receptacle: receptacle.kind not in needed):
        (rest if receptacle.kind in seen else first).append(receptacle)
        seen.add(receptacle.kind)
    return tuple(sorted((first + rest)[:most], key=lambda receptacle: receptacle.id))


def _needed_kinds(shipped: Shipped, receptacles: Sequence[Receptacle], wish: Wish) -> set[str]:
    needed = {wish.place}
    if wish.task in STATIONS:
        needed.add(STATIONS[wish.task][1])
    if wish.task == LOOK:
        needed.add(next(r.kind for r in receptacles if r.kind in FIXED_ON[LAMP]))
    homes = [
        r
        for r in receptacles
        if wish.kind in shipped.can_hold.get(r.kind, ()) and r.kind != wish.place
    ]
    homes = [r for r in homes if not r.openable] or homes
    return needed | {r.kind for r in homes[:1]}


@dataclass(slots=True)
class Furnisher:
    """A room being filled; the order of the calls decides what the random numbers are used for."""

    shipped: Shipped
    room: Room
    receptacles: tuple[Receptacle, ...]
    rng: random.Random
    things: list[Thing] = field(default_factory=list)
    filled: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.filled = [0] * len(self.receptacles)

    def add_fixtures(self) -> None:
        for kind, stands in sorted(FIXED_ON.items()):
            if kind in self.room.object_kinds:
                where = [i for i, r in enumerate(self.receptacles) if r.kind in stands]
                self._put(kind, where, crowded=False)

    def add_targets(self, wish: Wish, difficulty: Difficulty) -> None:
        """The copies asked for; UnfitError where too few find a place."""
        fewest, most = difficulty.copies
        if wish.task == TWO:
            fewest, most = max(2, fewest), max(2, most)
        where = self._target_homes(wish)
        if difficulty.hidden is not None:
            closed = self.rng.random() < difficulty.hidden
            match = [i for i in where if self.receptacles[i].openable == closed]
            where = match or where
        if difficulty.far and len(where) > 1:
            top = max(self._crowd(i) for i in where)
            where = [i for i in where if self._crowd(i) < top] or where
        for _ in range(self.rng.randint(fewest, most)):
            free = [i for i in where if self._has_room(i)]
            self._put(wish.kind, free, crowded=not difficulty.far)
        if sum(thing.kind == wish.kind for thing in self.things) < fewest:
            raise UnfitError("no room for the object asked for")

    def add_clutter(self, wish: Wish, difficulty: Difficulty) -> None:
        for kind in self.room.object_kinds:
            if kind not in PICKUPABLE or kind == wish.kind:
                continue
            if difficulty.kinds < 1 and self.rng.random() >= difficulty.kinds:
                continue
            most = 1 if kind in SINGLE else 2 if kind in FEW else 3
            for _ in range(self.rng.randint(1, min(most, difficulty.max_copies))):
                self._put(kind, self._homes(kind), crowded=True)

    def give_ids(self) -> None:
        """Invented positions near the receptacle, each id its own."""
        used = {receptacle.id for receptacle in self.receptacles}
        for position, thing in enumerate(self.things):
            around = [float(part) for part in self.receptacles[thing.where].id.split("|")[1:4]]
            name = ""
            while not name or name in used:
                name = object_id(
                    thing.kind,
                    around[0] + self.rng.uniform(-0.4, 0.4),
                    around[1] + self.rng.uniform(0, 0.3),
                    around[2] + self.rng.uniform(-0.4, 0.4),
                )
            used.add(name)
            self.things[position] = Thing(thing.kind, thing.where, name)

    def _target_homes(self, wish: Wish) -> list[int]:
        """As published: no copy at its own station nor, for plain placing, at its place."""
        if wish.task in (PICK, TWO):
            return self._homes(wish.kind, {wish.place})
        if wish.task not in STATIONS:
            return self._homes(wish.kind)
        station = STATIONS[wish.task][1]
        banned = {station} | ({wish.place} if self.rng.random() < 0.4 else set())
        return self._homes(wish.kind, banned) or self._homes(wish.kind, banned - {wish.place})

    def _homes(self, kind: str, banned: Collection[str] = ()) -> list[int]:
        extra = EXTRA_HOMES.get(kind, ())
        return [
            i
            for i, r in enumerate(self.receptacles)
            if (kind in self.shipped.can_hold.get(r.kind, ()) or r.kind in extra)
            and r.kind not in banned
            and self._has_room(i)
        ]

    def _put(self, kind: str, where: Sequence[int], *, crowded: bool) -> None:
        """At one of `where`, by how crowded such places are or evenly; nowhere if there is none."""
        if not where:
            return
        if crowded:
            own = [OWN_PLACE.get((kind, self.receptacles[i].kind), 1) for i in where]
            weights = [self._crowd(i) * factor for i, factor in zip(where, own, strict=True)]
            chosen = self.rng.choices(where, weights)[0]
        else:
            chosen = self.rng.choice(where)
        self.filled[chosen] += 1
        self.things.append(Thing(kind, chosen))

    def _crowd(self, position: int) -> float:
        return CROWD.get(self.receptacles[position].kind, CROWD_ELSEWHERE)

    def _has_room(self, position: int) -> bool:
        kind = self.receptacles[position].kind
        return self.filled[position] < ROOM_FOR.get(kind, ROOM_FOR_ELSEWHERE)
