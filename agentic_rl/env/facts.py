"""What ALFWorld's predicates say of a state: what is in hand, and where the agent stands."""

from agentic_rl.env.engine import Game
from agentic_rl.env.engine.runtime import State


def describe(game: Game, state: State) -> tuple[tuple[str, ...], str]:
    """The names in hand, and of the receptacles in front; empty in the middle of the room."""
    held = {fact[-1] for fact in game.facts(state, "holds")} if _knows(game, "holds", 2) else set()
    return _names(game, held), ", ".join(_names(game, _in_front(game, state)))


def _in_front(game: Game, state: State) -> set[int]:
    if not _knows(game, "atlocation", 2) or not _knows(game, "receptacleatlocation", 2):
        return set()
    here = {fact[-1] for fact in game.facts(state, "atlocation")}
    return {
        receptacle
        for receptacle, location in game.facts(state, "receptacleatlocation")
        if location in here
    }


def _knows(game: Game, predicate: str, places: int) -> bool:
    return len(game.domain.predicates.get(predicate, ())) == places


def _names(game: Game, objects: set[int]) -> tuple[str, ...]:
    return tuple(sorted(game.entities[n].name for n in objects if n in game.entities))
