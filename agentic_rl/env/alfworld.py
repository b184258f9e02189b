"""ALFWorld's text games, played by the compiled engine or by TextWorld itself."""

import logging
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from agentic_rl.env import envs
from agentic_rl.env.engine import (
    Game,
    GameFile,
    Move,
    UnsafeGame,
    UnsupportedGame,
    World,
    read_file,
)
from agentic_rl.env.engine.safety import refuse_unsafe
from agentic_rl.env.engine.snapshot import restore, take
from agentic_rl.env.facts import Describer
from agentic_rl.env.naming import alfworld_names
from agentic_rl.env.reference.pool import ReferenceEnv, ReferencePool
from agentic_rl.errors import EnvError, did_you_mean
from agentic_rl.interfaces import Env
from agentic_rl.types import EnvStep, Task

ENGINES = ("compiled", "textworld")
MOST_WORLDS = 16

log = logging.getLogger(__name__)

History = tuple["History", str] | None
"""The commands of an episode, linked from the last to the first: branches share them."""


class CompiledEnv:
    """One episode on the compiled engine; a finished one keeps giving its last result.

    Where the engine meets something on the way that it cannot reproduce, TextWorld takes over.
    """

    __slots__ = ("_history", "_move", "_shared", "_stand_in", "_task", "_world")

    def __init__(self, shared: "_Shared", task: Task, world: World, at: Move) -> None:
        self._shared, self._task, self._world = shared, task, world
        self._move = at
        self._history: History = None
        self._stand_in: ReferenceEnv | None = None

    @property
    def last(self) -> EnvStep:
        return self._move.result if self._stand_in is None else self._stand_in.last

    async def reset(self) -> EnvStep:
        if self._stand_in is not None:
            return await self._stand_in.reset()
        self._move, self._history = self._world.start, None
        return self._move.result

    async def step(self, action: str) -> EnvStep:
        if self._stand_in is not None:
            return await self._stand_in.step(action)
        if not self._move.result.done:
            try:
                self._move = self._world.step(self._move.node, action)
            except UnsupportedGame as error:
                return await self._give_up(error, action)
            self._history = (self._history, action)
        return self._move.result

    async def branch(self) -> Env:
        if self._stand_in is not None:
            return await self._stand_in.branch()
        other = CompiledEnv(self._shared, self._task, self._world, self._move)
        other._history = self._history
        return other

    def snapshot(self) -> bytes:
        """This moment in a few hundred bytes, for `AlfworldEnv.restore`; on the engine only."""
        if self._stand_in is not None:
            raise EnvError("TextWorld's state cannot be written down")
        return take(self._world, self._move)

    async def close(self) -> None:
        if self._stand_in is not None:
            await self._stand_in.close()

    async def _give_up(self, error: UnsupportedGame, action: str) -> EnvStep:
        stand_in = await self._shared.fall_back(self._task, error)
        for earlier in _in_order(self._history):
            await stand_in.step(earlier)
        if stand_in.last != replace(self._move.result, state=None):
            raise EnvError(f"{self._task.task_id}: the engines differ before the engine gave up")
        self._stand_in = stand_in
        return await stand_in.step(action)


def _in_order(history: History) -> list[str]:
    commands: list[str] = []
    while history is not None:
        history, command = history
        commands.append(command)
    return commands[::-1]


class _Shared:
    """What the environments of one run have in common: loaded games, and TextWorld's workers."""

    def __init__(self, reference: ReferencePool) -> None:
        self._worlds: OrderedDict[tuple[str, str], World] = OrderedDict()
        self.reference = reference
        self.fallen: dict[str, str] = {}

    def world(self, task: Task) -> World:
        """Each game is loaded once; the one opened least recently goes first."""
        key = (task.game_file, task.digest)
        world = self._worlds.pop(key, None) or open_world(Game(_file(task), alfworld_names))
        self._worlds[key] = world
        if len(self._worlds) > MOST_WORLDS:
            self._worlds.popitem(last=False)
        return world

    async def fall_back(self, task: Task, error: UnsupportedGame) -> ReferenceEnv:
        """TextWorld plays this game from now on: one warning for all of the run's games."""
        file = _file(task)
        refuse_unsafe(file)
        if not self.fallen:
            log.warning("%s is played by TextWorld, which is slow: %s", task.task_id, error)
        self.fallen.setdefault(task.game_file, str(error))
        return await self.reference.open(file)


def load_game(path: str | Path) -> Game:
    """A game outside of any run; `load_game(path).source` shows the code that plays it."""
    return Game(read_file(path), alfworld_names)


def open_world(game: Game) -> World:
    """Where a game is played, step by step."""
    return World(game, Describer(game))


def _file(task: Task) -> GameFile:
    if not task.game_file or not Path(task.game_file).is_file():
        raise EnvError(f"{task.task_id} has no game file: '{task.game_file}'")
    try:
        file = read_file(task.game_file)
    except OSError as error:
        raise EnvError(f"{task.game_file} cannot be read: {error.strerror}") from error
    if task.digest and task.digest != file.digest:
        raise EnvError(f"{task.game_file} is not the file that was listed: its sha256 differs")
    return file


@envs.register("alfworld")
@dataclass(frozen=True)
class AlfworldEnv:
    """Opens ALFWorld games. What the compiled engine refuses TextWorld plays."""

    engine: str = "compiled"
    workers: int = 2
    timeout: float = 120.0
    plain: bool = False

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            near = did_you_mean(self.engine, ENGINES)
            raise ValueError(f"engine={self.engine} is not one of {', '.join(ENGINES)}.{near}")
        if self.workers < 1 or self.timeout <= 0:
            raise ValueError(f"workers={self.workers} or timeout={self.timeout} is not positive")

    @property
    def fallbacks(self) -> int:
        return len(self._shared.fallen)

    @property
    def gives_state(self) -> bool:
        """Not on TextWorld; nor for the single game that the engine refuses."""
        return self.engine == "compiled"

    async def open(self, task: Task) -> Env:
        """Raises EnvError where the file is missing, has changed, or is nothing to play."""
        if self.engine == "textworld":
            return await self._shared.reference.open(_file(task))
        if task.game_file in self._shared.fallen:
            return await self._shared.reference.open(_file(task))
        try:
            world = self._shared.world(task)
            return CompiledEnv(self._shared, task, world, world.start)
        except UnsafeGame:
            raise
        except UnsupportedGame as error:
            return await self._shared.fall_back(task, error)

    async def restore(self, task: Task, snapshot: bytes) -> Env:
        """An episode as `snapshot()` left it, without a history; IntegrityError for another game.

        Should TextWorld have to take over later, it cannot: that is an EnvError.
        """
        world = self._shared.world(task)
        return CompiledEnv(self._shared, task, world, restore(world, snapshot))

    async def close(self) -> None:
        """Ends TextWorld's workers."""
        await self._shared.reference.close()

    @cached_property
    def _shared(self) -> _Shared:
        return _Shared(ReferencePool(self.workers, self.timeout, plain=self.plain))
