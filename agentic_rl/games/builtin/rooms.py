"""Rooms: what stands where. A room depends on its number and on nothing else."""

import random
from dataclasses import dataclass

from agentic_rl.games.builtin.naming import object_id
from agentic_rl.games.builtin.shipped import Layout, Shipped
from agentic_rl.games.builtin.tables import ROOM_KINDS, STUCK, UNPLACED

GENERATOR_VERSION = "1"
Location = tuple[int, int, int, int]
"""Grid x and z, quarter turns, and the horizon in degrees."""

_AHEAD = ((0, 0.55), (0.55, 0), (0, -0.55), (-0.55, 0))


@dataclass(frozen=True, slots=True)
class Receptacle:
    id: str
    kind: str
    openable: bool
    location: Location


@dataclass(frozen=True, slots=True)
class Room:
    """`object_kinds` are all kinds the room knows, receptacles among them."""

    scene: int
    kind: str
    object_kinds: tuple[str, ...]
    receptacles: tuple[Receptacle, ...]
    points: tuple[tuple[float, float], ...]


def room_kind(scene: int) -> str:
    return next(kind for kind, scenes in ROOM_KINDS.items() if scene in scenes)


def build_room(shipped: Shipped, scene: int) -> Room:
    """The shipped receptacles, invented places for those without, and some stuck doors."""
    layout, kind = shipped.layout(scene), room_kind(scene)
    placed = _placed(shipped, layout)
    inventor = _Inventor(random.Random(f"room/{GENERATOR_VERSION}/{scene}"), layout, placed)
    have = {receptacle.kind for receptacle in placed}
    for of in layout.kinds:
        if of in shipped.receptacles and of not in have:
            inventor.add(of, of in shipped.openable, UNPLACED.get(of, (1, 1)))
    for of, span in STUCK[kind].items():
        if of in layout.kinds:
            inventor.add(of, False, span)
    ordered = tuple(sorted(placed, key=lambda receptacle: receptacle.id))
    return Room(scene, kind, layout.kinds, ordered, layout.points)


def _placed(shipped: Shipped, layout: Layout) -> list[Receptacle]:
    receptacles = []
    for name, (x, z, rotation, horizon) in layout.placed.items():
        kind = name.rsplit("|", 1)[-1] if name.endswith("Basin") else name.split("|", 1)[0]
        if kind in shipped.receptacles and kind in layout.kinds:
            place = (round(x * 4), round(z * 4), round(rotation / 90) % 4, round(horizon))
            receptacles.append(Receptacle(name, kind, kind in shipped.openable, place))
    return receptacles


@dataclass(frozen=True, slots=True)
class _Inventor:
    """Adds receptacles at invented places of the layout."""

    rng: random.Random
    layout: Layout
    receptacles: list[Receptacle]

    def add(self, kind: str, openable: bool, span: tuple[int, int]) -> None:
        for _ in range(self.rng.randint(*span)):
            found = next(filter(None, (self._try(kind, openable) for _ in range(100))), None)
            if found is not None:
                self.receptacles.append(found)

    def _try(self, kind: str, openable: bool) -> Receptacle | None:
        rng = self.rng
        x, z = rng.choice(self.layout.points)
        turn = rng.randrange(4)
        ahead = _AHEAD[turn]
        name = object_id(
            kind,
            x + ahead[0] + rng.uniform(-0.2, 0.2),
            rng.uniform(0.2, 1.6),
            z + ahead[1] + rng.uniform(-0.2, 0.2),
        )
        if kind.endswith("Basin"):
            name = f"{name.replace(kind, kind.removesuffix('Basin'), 1)}|{kind}"
        if any(receptacle.id == name for receptacle in self.receptacles):
            return None
        place = (round(x * 4), round(z * 4), turn, rng.choice((15, 30, 45, 60)))
        return Receptacle(name, kind, openable, place)
