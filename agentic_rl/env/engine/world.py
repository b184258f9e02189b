"""The states of one game as they are visited: every step is worked out once and then looked up.

Branches of a game meet in the same states again and again; they share one `World`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.game import Game
from agentic_rl.env.engine.runtime import Commands, Operator, State
from agentic_rl.types import EnvStep, StateFacts

MOST_NODES = 4_000

Describe = Callable[[State], tuple[tuple[str, ...], str]]
"""(inventory, location) of a state."""


@dataclass(eq=False, slots=True)
class Node:
    """A state with what can be done in it; `after` holds the steps taken so far."""

    state: State
    won: bool
    commands: tuple[str, ...]
    operators: Commands
    facts: StateFacts
    after: dict[str, "Move"] = field(default_factory=dict)
    nothing: EnvStep | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A step taken: what it answered, where it led, and by which operator (None: by none)."""

    result: EnvStep
    node: Node
    operator: Operator | None = None


class World:
    """Plays a game from any node; nothing of it ever changes what a node is."""

    def __init__(self, game: Game, describe: Describe, most_nodes: int = MOST_NODES) -> None:
        self.game = game
        self._most_nodes = most_nodes
        self._describe = describe
        self._nodes: dict[int, Node] = {}
        node = self.node(game.start)
        self.start = Move(_result(node, game.intro(game.start), start=True), node)

    def step(self, node: Node, command: str) -> Move:
        """What a command does; one that is not admissible does nothing."""
        move = node.after.get(command)
        if move is None:
            operator = node.operators.get(command.strip())
            if operator is None:
                # Kept once a node: of such commands there are arbitrarily many.
                if node.nothing is None:
                    node.nothing = _result(node, "Nothing happens.", admissible=False)
                return Move(node.nothing, node)
            move = node.after[command] = self.apply(node, operator)
        return move

    def apply(self, node: Node, operator: Operator) -> Move:
        state = self.game.act(node.state, operator)
        if state is not node.state:
            return self.arrive(state, operator)
        return Move(_result(node, self.answer(node, operator)), node, operator)

    def answer(self, node: Node, operator: Operator) -> str:
        try:
            return self.game.answer(node.state, operator)
        except RecursionError as error:
            raise UnsupportedGame("a text nested too deeply") from error

    def arrive(self, state: State, operator: Operator | None) -> Move:
        """The move that led to a state; without an operator, one by which nothing happened."""
        node = self.node(state)
        if operator is None:
            return Move(_result(node, "Nothing happens.", admissible=False), node)
        return Move(_result(node, self.answer(node, operator)), node, operator)

    def node(self, state: State) -> Node:
        known = self._nodes.get(state[-1])
        if known is not None and known.state == state:
            return known
        if len(self._nodes) >= self._most_nodes:
            self._forget()
        operators = self.game.commands(state)
        inventory, location = self._describe(state)
        node = self._nodes[state[-1]] = Node(
            state=state,
            won=self.game.won(state),
            commands=tuple(sorted(operators)),
            operators=operators,
            facts=StateFacts(f"{state[-1]:016x}", inventory, location),
        )
        return node

    def _forget(self) -> None:
        """Nodes lead to nodes, so their moves go as well; episodes under way keep their own."""
        for node in self._nodes.values():
            node.after.clear()
        self._nodes.clear()


def _result(
    node: Node, observation: str, *, admissible: bool = True, start: bool = False
) -> EnvStep:
    won = node.won
    return EnvStep(
        observation=observation,
        admissible_actions=node.commands,
        admissible=admissible,
        score=1.0 if won and not start else 0.0,
        done=won and not start,
        won=won,
        state=node.facts,
    )
