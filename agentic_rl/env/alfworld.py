"""ALFWorld's text games, played by the compiled engine or by TextWorld itself."""

import logging
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentic_rl.env import envs
from agentic_rl.env.engine import (
    Game,
    Move,
    UnsafeGame,
    UnsupportedGame,
    World,
    alfworld_names,
    read_file,
)
from agentic_rl.env.facts import describe
from agentic_rl.errors import EnvError, did_you_mean
from agentic_rl.interfaces import Env
from agentic_rl.types import EnvStep, Task

ENGINES = ("compiled", "textworld")
_MOST_WORLDS = 16

log = logging.getLogger(__name__)


class CompiledEnv:
    """One episode on the compiled engine; a finished one keeps giving its last result."""

    __slots__ = ("_move", "_world")

    def __init__(self, world: World, move: Move) -> None:
        self._world = world
        self._move = move

    @property
    def last(self) -> EnvStep:
        return self._move.result

    async def reset(self) -> EnvStep:
        self._move = self._world.start
        return self._move.result

    async def step(self, action: str) -> EnvStep:
        if not self._move.result.done:
            self._move = self._world.step(self._move.node, action)
        return self._move.result

    async def branch(self) -> "CompiledEnv":
        return CompiledEnv(self._world, self._move)

    async def close(self) -> None:
        """Nothing is held."""


class _Worlds:
    """The games in use, each loaded once; the least recently opened one goes first."""

    def __init__(self) -> None:
        self._worlds: OrderedDict[tuple[str, str], World] = OrderedDict()
        self.fallen: set[str] = set()

    def open(self, task: Task) -> World:
        key = (task.game_file, task.digest)
        world = self._worlds.pop(key, None) or _load(task)
        self._worlds[key] = world
        if len(self._worlds) > _MOST_WORLDS:
            self._worlds.popitem(last=False)
        return world


def _load(task: Task) -> World:
    if not task.game_file or not Path(task.game_file).is_file():
        raise EnvError(f"{task.task_id} has no game file: '{task.game_file}'")
    file = read_file(task.game_file)
    if task.digest and task.digest != file.digest:
        raise EnvError(f"{task.game_file} is not the file that was listed: its sha256 differs")
    return World(Game(file, alfworld_names), describe)


@envs.register("alfworld")
@dataclass(frozen=True)
class AlfworldEnv:
    """Opens ALFWorld games. What the compiled engine refuses TextWorld plays."""

    engine: str = "compiled"
    workers: int = 2

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            near = did_you_mean(self.engine, ENGINES)
            raise ValueError(f"engine={self.engine} is not one of {', '.join(ENGINES)}.{near}")
        if self.workers < 1:
            raise ValueError(f"workers={self.workers} is below 1")

    @property
    def fallbacks(self) -> int:
        return len(self._worlds.fallen)

    async def open(self, task: Task) -> Env:
        try:
            world = self._worlds.open(task)
        except UnsafeGame:
            raise
        except UnsupportedGame as error:
            raise EnvError(f"{task.task_id}: {error}") from error
        return CompiledEnv(world, world.start)

    async def close(self) -> None:
        """Ends what is still running."""

    @cached_property
    def _worlds(self) -> _Worlds:
        return _Worlds()
