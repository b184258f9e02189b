"""Games for the toy world: no file, the id says everything."""

import hashlib
from dataclasses import dataclass

from agentic_rl.errors import GamesError, did_you_mean
from agentic_rl.games import games_sources
from agentic_rl.hashing import stable_hash
from agentic_rl.types import GameSet, Task

_KINDS = ("find", "move")


@games_sources.register("toy")
@dataclass(frozen=True)
class Toy:
    """`toy-KIND-BOXES-SEED` tasks, half of them `find` and half `move`."""

    train: int = 32
    valid_seen: int = 16
    valid_unseen: int = 16
    boxes: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.boxes <= 64:
            raise ValueError(f"boxes={self.boxes} is not between 2 and 64")

    @property
    def splits(self) -> tuple[str, ...]:
        return ("train", "valid_seen", "valid_unseen")

    def load(self, split: str) -> GameSet:
        if split not in self.splits:
            raise GamesError(
                f"no split '{split}' in games 'toy'.{did_you_mean(split, self.splits)}"
                f" Splits: {', '.join(self.splits)}."
            )
        count: int = getattr(self, split)
        tasks = sorted((self._task(split, n) for n in range(count)), key=lambda task: task.task_id)
        if not tasks:
            raise GamesError(f"games 'toy' has no game in '{split}': raise games.{split}")
        return GameSet(split=split, tasks=tuple(tasks), excluded={})

    def _task(self, split: str, number: int) -> Task:
        kind = _KINDS[number % len(_KINDS)]
        seed = stable_hash("toy", self.seed, split, number)
        task_id = f"toy-{kind}-{self.boxes}-{seed}"
        return Task(
            task_id=task_id,
            split=split,
            task_type=f"toy_{kind}",
            game_file="",
            digest=hashlib.sha256(task_id.encode()).hexdigest(),
        )
