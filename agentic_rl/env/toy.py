"""A world of boxes that needs no game file: for tests, and to see a whole run in seconds.

A task's id says everything: `toy-KIND-BOXES-SEED`. The wording is ALFWorld's.
"""

from dataclasses import dataclass, replace

from agentic_rl.env import envs
from agentic_rl.errors import EnvError
from agentic_rl.hashing import stable_hash
from agentic_rl.types import EnvStep, StateFacts, Task

_KINDS = ("find", "move")
_MOST_BOXES = 64


@dataclass(frozen=True, slots=True)
class ToyGame:
    """What a task's id stands for; boxes are numbered from 1."""

    kind: str
    boxes: int
    thing: str
    hidden_in: int
    target: int
    closed: frozenset[int]

    @classmethod
    def of(cls, task_id: str) -> "ToyGame":
        """Raises EnvError for an id that no toy game has."""
        parts = task_id.split("-")
        numbers = parts[2:] if len(parts) == 4 and parts[0] == "toy" else []
        if not numbers or parts[1] not in _KINDS or not all(map(str.isdecimal, numbers)):
            raise EnvError(f"'{task_id}' is no toy game: its id is toy-find|move-BOXES-SEED")
        boxes = int(numbers[0])
        if not 2 <= boxes <= _MOST_BOXES:
            raise EnvError(f"'{task_id}' has {boxes} boxes: a toy game has 2 to {_MOST_BOXES}")
        hidden_in = 1 + stable_hash(task_id, "hidden") % boxes
        return cls(
            kind=parts[1],
            boxes=boxes,
            thing=("key", "coin", "book")[stable_hash(task_id, "thing") % 3] + " 1",
            hidden_in=hidden_in,
            target=1 + (hidden_in + stable_hash(task_id, "target") % (boxes - 1)) % boxes,
            closed=frozenset(
                box for box in range(1, boxes + 1) if stable_hash(task_id, "closed", box) % 2
            ),
        )

    @property
    def goal(self) -> str:
        if self.kind == "find":
            return f"find the {self.thing}"
        return f"move the {self.thing} to box {self.target}"

    @property
    def walkthrough(self) -> tuple[str, ...]:
        """A shortest way to win."""
        commands = [*self._approach(self.hidden_in), f"take {self.thing} from box {self.hidden_in}"]
        if self.kind == "move":
            commands += [*self._approach(self.target), f"move {self.thing} to box {self.target}"]
        return tuple(commands)

    def _approach(self, box: int) -> list[str]:
        return [f"go to box {box}"] + [f"open box {box}"] * (box in self.closed)


@dataclass(frozen=True, slots=True)
class _State:
    at: int = 0
    thing_in: int = 0  # 0: in the hand
    opened: frozenset[int] = frozenset()


@dataclass
class ToyEnv:
    """One episode; a finished one keeps giving its last result."""

    game: ToyGame
    fail_at: int = 0

    def __post_init__(self) -> None:
        self._state = _State(thing_in=self.game.hidden_in)
        self._steps = 0
        self._last = self._result(self._welcome())

    @property
    def last(self) -> EnvStep:
        return self._last

    async def reset(self) -> EnvStep:
        self.__post_init__()
        return self._last

    async def step(self, action: str) -> EnvStep:
        if self._last.done:
            return self._last
        self._steps += 1
        if self._steps == self.fail_at:
            raise EnvError(f"the toy world fails at step {self.fail_at}, as env.fail_at asks")
        action = action.strip()
        if action in self._last.admissible_actions:
            self._last = self._result(self._act(action))
        else:
            self._last = replace(
                self._last, observation="Nothing happens.", admissible=False, score=0.0
            )
        return self._last

    async def branch(self) -> "ToyEnv":
        other = ToyEnv(self.game, self.fail_at)
        other._state, other._steps, other._last = self._state, self._steps, self._last
        return other

    async def close(self) -> None:
        """Nothing is held."""

    def _welcome(self) -> str:
        seen = [f"a box {box}" for box in range(self.game.boxes, 0, -1)]
        return (
            "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking"
            f" quickly around you, you see {', '.join(seen[:-1])}, and {seen[-1]}.\n\n"
            f"Your task is to: {self.game.goal}."
        )

    def _is_open(self, box: int) -> bool:
        return box not in self.game.closed or box in self._state.opened

    def _commands(self) -> tuple[str, ...]:
        state, thing = self._state, self.game.thing
        found = ["help", "inventory", "look"]
        found += [f"go to box {box}" for box in range(1, self.game.boxes + 1) if box != state.at]
        if state.at and not self._is_open(state.at):
            found.append(f"open box {state.at}")
        elif state.at and state.thing_in == state.at:
            found.append(f"take {thing} from box {state.at}")
        elif state.at and state.thing_in == 0:
            found.append(f"move {thing} to box {state.at}")
        return tuple(sorted(found))

    def _act(self, action: str) -> str:
        state, thing = self._state, self.game.thing
        match action.split():
            case ["go", *_, number]:
                self._state = replace(state, at=int(number))
                return f"You arrive at box {number}. {self._contents()}"
            case ["open", *_]:
                self._state = replace(state, opened=state.opened | {state.at})
                return f"You open the box {state.at}. {self._contents()}"
            case ["take", *_]:
                self._state = replace(state, thing_in=0)
                return f"You pick up the {thing} from the box {state.at}."
            case ["move", *_]:
                self._state = replace(state, thing_in=state.at)
                return f"You move the {thing} to the box {state.at}."
            case ["inventory"]:
                held = f": a {thing}" if state.thing_in == 0 else " nothing"
                return f"You are carrying{held}."
            case ["look"]:
                return self._contents() if state.at else "You are in the middle of a room."
        return "Available commands: go to, open, take, move, look, inventory, help."

    def _contents(self) -> str:
        box = self._state.at
        if not self._is_open(box):
            return f"The box {box} is closed."
        seen = f"a {self.game.thing}" if self._state.thing_in == box else "nothing"
        return f"On the box {box}, you see {seen}."

    def _result(self, observation: str) -> EnvStep:
        state, game = self._state, self.game
        won = state.thing_in == (0 if game.kind == "find" else game.target)
        digest = stable_hash(game, state.at, state.thing_in, sorted(state.opened))
        facts = StateFacts(
            digest=f"{digest:08x}",
            inventory=(game.thing,) if state.thing_in == 0 else (),
            location=f"box {state.at}" if state.at else "",
        )
        return EnvStep(observation, self._commands(), True, float(won), won, won, facts)


@envs.register("toy")
@dataclass(frozen=True)
class Toy:
    """Opens toy games; `fail_at` tries out how a run takes failures."""

    fail_at: int = 0

    @property
    def fallbacks(self) -> int:
        return 0

    @property
    def gives_state(self) -> bool:
        return True

    async def open(self, task: Task) -> ToyEnv:
        return ToyEnv(ToyGame.of(task.task_id), self.fail_at)

    async def close(self) -> None:
        """Nothing is held."""
