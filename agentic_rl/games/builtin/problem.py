"""A game as its problem text in PDDL."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentic_rl.games.builtin.furnish import Thing, Wish
from agentic_rl.games.builtin.naming import mangle
from agentic_rl.games.builtin.rooms import Location, Receptacle
from agentic_rl.games.builtin.shipped import Shipped
from agentic_rl.games.builtin.tables import (
    COOL,
    DOMAIN_OBJECT_KINDS,
    DOMAIN_RECEPTACLE_KINDS,
    PICKUPABLE,
)

_AFFORDED = ("Cleanable", "Heatable", "Coolable", "Toggleable", "Sliceable")


@dataclass(frozen=True, slots=True)
class Scene:
    """All that the first state of a game holds; things are sorted by id."""

    wish: Wish
    receptacles: Sequence[Receptacle]
    things: Sequence[Thing]
    start: Location


def problem_text(shipped: Shipped, scene: Scene, trial: str) -> str:
    objects = "\n  ".join(f"{mangle(name)} - {kind}" for name, kind in _objects(scene))
    facts = mangle("\n  ".join(f"({fact})" for fact in _facts(shipped, scene)))
    head = f"(define (problem plan_{trial})\n(:domain alfred)\n(:objects\n  {objects}\n)\n"
    return f"{head}(:init\n  {facts}\n)\n{_goal(shipped, scene.wish)}\n"


def _objects(scene: Scene) -> Iterator[tuple[str, str]]:
    yield "agent1", "agent"
    for kind in sorted({thing.kind for thing in scene.things} | {*DOMAIN_OBJECT_KINDS}):
        yield f"{kind}Type", "otype"
    for kind in sorted({r.kind for r in scene.receptacles} | {*DOMAIN_RECEPTACLE_KINDS}):
        yield f"{kind}Type", "rtype"
    for thing in scene.things:
        yield thing.id, "object"
    for receptacle in scene.receptacles:
        yield receptacle.id, "receptacle"
    for location in sorted({r.location for r in scene.receptacles} | {scene.start}):
        yield _location(location), "location"


def _facts(shipped: Shipped, scene: Scene) -> Iterator[str]:
    receptacles, things = scene.receptacles, scene.things
    yield from (f"receptacleType {r.id} {r.kind}Type" for r in receptacles)
    yield from (f"objectType {thing.id} {thing.kind}Type" for thing in things)
    present = {thing.kind for thing in things}
    for place in sorted({r.kind for r in receptacles}):
        held = (kind for kind in shipped.can_hold.get(place, ()) if kind in present)
        yield from (f"canContain {place}Type {kind}Type" for kind in held)
    yield from (f"pickupable {thing.id}" for thing in things if thing.kind in PICKUPABLE)
    yield from (
        f"isReceptacleObject {thing.id}" for thing in things if thing.kind in shipped.movable
    )
    yield from (f"openable {r.id}" for r in receptacles if r.openable)
    yield f"atLocation agent1 {_location(scene.start)}"
    for affords in _AFFORDED:
        able = (thing for thing in things if thing.kind in shipped.affords[affords])
        yield from (f"{affords.lower()} {thing.id}" for thing in able)
    yield from (f"isCool {thing.id}" for thing in things if _cold(shipped, scene, thing))
    yield from (f"inReceptacle {thing.id} {receptacles[thing.where].id}" for thing in things)
    yield from (f"receptacleAtLocation {r.id} {_location(r.location)}" for r in receptacles)
    for thing in things:
        yield f"objectAtLocation {thing.id} {_location(receptacles[thing.where].location)}"


def _cold(shipped: Shipped, scene: Scene, thing: Thing) -> bool:
    """As published: copies asked for that lie in a fridge, unless cooling is the task."""
    return (
        thing.kind == scene.wish.kind
        and scene.wish.task != COOL
        and scene.receptacles[thing.where].kind == "Fridge"
        and thing.kind in shipped.affords["Coolable"]
    )


def _location(location: Location) -> str:
    return "loc|{}|{}|{}|{}".format(*location)


def _goal(shipped: Shipped, wish: Wish) -> str:
    text = shipped.goals[wish.task].pddl.format(
        obj=wish.kind, recep=wish.place, toggle=wish.place, mrecep=""
    )
    text = re.sub(r"\n +", "\n  ", text.replace("#", "-")).strip()
    # Most of the library's goals bring the bracket that closes `(define`; some do not.
    missing = text.count("(") - text.count(")") + 1
    return text + "\n)" * missing
