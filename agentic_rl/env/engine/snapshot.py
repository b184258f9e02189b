"""A moment of an episode in a few hundred bytes: what differs from the start of its game.

It names its game by the sha256 of the file and refuses any other. It is read as data: whatever
does not fit the game is an IntegrityError.
"""

import json
from typing import Any

from agentic_rl.env.engine.game import Game
from agentic_rl.env.engine.runtime import Operator
from agentic_rl.env.engine.world import Move, World
from agentic_rl.errors import IntegrityError

VERSION = 1
MOST_BYTES = 100_000


def take(world: World, move: Move) -> bytes:
    """`by` is the operator that led here, [] where the last command did nothing, null at start."""
    game = world.game
    start, now = set(game.stored_facts(game.start)), set(game.stored_facts(move.node.state))
    content = {
        "version": VERSION,
        "game": game.digest,
        "state": move.node.facts.digest,
        "less": sorted(_named(game, fact) for fact in start - now),
        "more": sorted(_named(game, fact) for fact in now - start),
        "by": None if move is world.start else list(move.operator or ()),
    }
    return json.dumps(content, separators=(",", ":")).encode()


def restore(world: World, snapshot: bytes) -> Move:
    """Raises IntegrityError for a snapshot of another game, and for one that is damaged."""
    game = world.game
    content = _content(snapshot)
    if content.get("version") != VERSION:
        raise IntegrityError(f"a snapshot of version {content.get('version')!r}, not {VERSION}")
    if content.get("game") != game.digest:
        raise IntegrityError(f"a snapshot of another game than {game.digest[:12]}")
    try:
        facts = set(game.stored_facts(game.start))
        facts -= {_fact(game, entry) for entry in content["less"]}
        facts |= {_fact(game, entry) for entry in content["more"]}
        state = game.state_of(facts)
        operator = _operator(game, content["by"])
        if f"{state[-1]:016x}" != content["state"]:
            raise ValueError("its facts are not those of its state")
        if content["by"] is None:
            return world.start
        return world.arrive(state, operator)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise IntegrityError(f"a damaged snapshot: {error}") from error


def _content(snapshot: bytes) -> dict[str, Any]:
    if len(snapshot) > MOST_BYTES:
        raise IntegrityError(f"a snapshot of {len(snapshot)} bytes")
    try:
        content = json.loads(snapshot)
    except (ValueError, RecursionError) as error:
        raise IntegrityError("a snapshot that is no JSON") from error
    if not isinstance(content, dict):
        raise IntegrityError("a snapshot that is no JSON object")
    return content


def _named(game: Game, fact: tuple[int, ...]) -> list[int]:
    """The relation by its place in the domain, whatever the generated code numbers it."""
    relation = game.shape.relations[fact[0]]
    place = list(game.domain.predicates).index(relation.predicate)
    return [2 * place + relation.deleted, *fact[1:]]


def _fact(game: Game, entry: Any) -> tuple[int, ...]:
    code, *objects = entry
    predicate, kinds = list(game.domain.predicates.items())[_number(code) // 2]
    numbers = [n for n, relation in enumerate(game.shape.relations) if relation.deleted == code % 2]
    number = next((n for n in numbers if game.shape.relations[n].predicate == predicate), None)
    if number is None or len(objects) != len(kinds):
        raise ValueError(f"a fact of {predicate} with {len(objects)} objects")
    for one, kind in zip(objects, kinds, strict=True):
        if kind not in ("object", game.types[_number(one)]):
            raise ValueError(f"a fact of {predicate} with objects of other types")
    return (number, *objects)


def _operator(game: Game, entry: Any) -> Operator | None:
    if not entry:
        return None
    number, *arguments = entry
    action = game.domain.actions[_number(number)]
    if len(arguments) != len(action.parameters):
        raise ValueError(f"{action.name} with {len(arguments)} arguments")
    for argument, (_, kind) in zip(arguments, action.parameters, strict=True):
        if kind not in ("object", game.types[_number(argument)]):
            raise ValueError(f"{action.name} with objects of other types")
    return (number, *arguments)


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{str(value)[:20]} is no number")
    return value
