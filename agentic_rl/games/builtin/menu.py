"""Which objects and places a room can host for a task, and for which split."""

import random

from agentic_rl.games.builtin.rooms import Room
from agentic_rl.games.builtin.shipped import Shipped
from agentic_rl.games.builtin.tables import (
    FIXED_ON,
    LAMP,
    LOOK,
    LOOKED_AT,
    NOT_ASKED_FOR,
    PICKUPABLE,
    STATIONS,
)


def combinations(shipped: Shipped, room: Room, task: str) -> list[tuple[str, str]]:
    """(object, kind of place) pairs; for `look` the place is the lamp."""
    if room.kind not in shipped.rooms_for[task]:
        return []
    standing = {receptacle.kind for receptacle in room.receptacles}
    homes = {
        kind: {place for place in standing if kind in shipped.can_hold.get(place, ())}
        for kind in room.object_kinds
        if kind in PICKUPABLE
    }
    objects = [kind for kind, places in homes.items() if places]
    if task == LOOK:
        lamp = LAMP in room.object_kinds and not standing.isdisjoint(FIXED_ON[LAMP])
        return [(kind, LAMP) for kind in objects if lamp and kind in LOOKED_AT]
    if task in STATIONS:
        affords, station, _ = STATIONS[task]
        if station not in standing:
            return []
        objects = [kind for kind in objects if kind in shipped.affords[affords]]
    return [
        (kind, place)
        for kind in objects
        for place in sorted(homes[kind] - NOT_ASKED_FOR[task])
        if homes[kind] - {place}
    ]


def seen_split(task: str, kind: str, place: str, scene: int) -> str:
    """train or valid_seen, fixed for ever: one in six validates, and the two never overlap."""
    rng = random.Random(f"share/{task}/{kind}/{place}/{scene}")
    return "valid_seen" if rng.random() < 1 / 6 else "train"
