"""What ALFWorld's predicates say of a state: what is in hand, and where the agent stands."""

from collections.abc import Hashable

from agentic_rl.env.engine import Game
from agentic_rl.env.engine.runtime import State


class Describer:
    """(names in hand, receptacles in front) of a state; both empty in the middle of the room."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._reads = [name for name in ("holds", "atlocation") if _places(game, name) == 2]
        self._known: dict[Hashable, tuple[tuple[str, ...], str]] = {}

    def __call__(self, state: State) -> tuple[tuple[str, ...], str]:
        key = tuple([self._game.key(state, name) for name in self._reads])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._describe(state)
        return known

    def _describe(self, state: State) -> tuple[tuple[str, ...], str]:
        held = {fact[-1] for fact in self._facts(state, "holds")}
        here = {fact[-1] for fact in self._facts(state, "atlocation")}
        front = {fact[0] for fact in self._facts(state, "receptacleatlocation") if fact[1] in here}
        return self._names(held), ", ".join(self._names(front))

    def _facts(self, state: State, predicate: str) -> list[tuple[int, ...]]:
        return (
            list(self._game.facts(state, predicate)) if _places(self._game, predicate) == 2 else []
        )

    def _names(self, objects: set[int]) -> tuple[str, ...]:
        entities = self._game.entities
        return tuple(sorted(entities[number].name for number in objects if number in entities))


def _places(game: Game, predicate: str) -> int:
    return len(game.domain.predicates.get(predicate, ()))
