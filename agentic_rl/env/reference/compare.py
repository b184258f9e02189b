"""The compiled engine beside TextWorld, step by step."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from agentic_rl.interfaces import Env, EnvPool
from agentic_rl.types import EnvStep, Task

GARBAGE = (
    "",
    "   ",
    "xyzzy",
    "GO TO BED 1",
    "go to nowhere 1",
    "take apple 1",
    "examine",
    "go to cabinet 99",
    "look around",
    "{o.name}",
    "inventory!",
)
RANDOM_STEPS, GARBAGE_STEPS, STEPS_AFTER_END = 30, 5, 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results compared, those that differed, and whether the walkthrough won at its very end."""

    steps: int = 0
    mismatches: tuple[str, ...] = ()
    won: bool = False

    def __add__(self, other: "Comparison") -> "Comparison":
        return Comparison(
            self.steps + other.steps, self.mismatches + other.mismatches, self.won or other.won
        )


class _Pair:
    """The same episode on both engines."""

    def __init__(self, task: Task, ours: Env, theirs: Env) -> None:
        self._task, self._ours, self._theirs = task, ours, theirs
        self.steps = 0
        self.mismatches: list[str] = []

    @property
    def last(self) -> EnvStep:
        return self._theirs.last

    async def step(self, command: str) -> None:
        await self._ours.step(command)
        await self._theirs.step(command)
        self.check(command)

    def check(self, what: str) -> None:
        """Compares all but the facts of the state, which TextWorld does not tell."""
        self.steps += 1
        ours, theirs = replace(self._ours.last, state=None), self._theirs.last
        if ours != theirs:
            self.mismatches.append(f"{self._task.game_file} {what!r}: {ours!r} != {theirs!r}")

    async def branch(self) -> "_Pair":
        return _Pair(self._task, await self._ours.branch(), await self._theirs.branch())

    async def close(self) -> Comparison:
        won = self.last.won
        await self._ours.close()
        await self._theirs.close()
        return Comparison(self.steps, tuple(self.mismatches), won)


async def compare_game(ours: EnvPool, theirs: EnvPool, task: Task, seed: int) -> Comparison:
    """The walkthrough and beyond its end; from one fork on the way random steps and garbage."""
    rng = random.Random(f"{seed} {task.digest}")
    walkthrough = walkthrough_of(task)
    pair = await _open(ours, theirs, task)
    depth = rng.randrange(len(walkthrough))
    for command in walkthrough[:depth]:
        await pair.step(command)
    fork = await pair.branch()
    for command in walkthrough[depth:]:
        await pair.step(command)
    for command in ("look", "xyzzy", "inventory")[:STEPS_AFTER_END]:
        await pair.step(command)
    kinds = ["random"] * RANDOM_STEPS + ["garbage"] * GARBAGE_STEPS
    rng.shuffle(kinds)
    main = await pair.close()
    for kind in kinds:
        await fork.step(_command(rng, fork.last.admissible_actions, garbage=kind == "garbage"))
    return main + replace(await fork.close(), won=False)


async def compare_commands(
    ours: EnvPool, theirs: EnvPool, task: Task, commands: Iterable[str]
) -> Comparison:
    """One given sequence of commands."""
    pair = await _open(ours, theirs, task)
    for command in commands:
        await pair.step(command)
    return await pair.close()


async def _open(ours: EnvPool, theirs: EnvPool, task: Task) -> _Pair:
    pair = _Pair(task, await ours.open(task), await theirs.open(task))
    pair.check("the start")
    return pair


def walkthrough_of(task: Task) -> tuple[str, ...]:
    """From the game file, where the task does not carry it."""
    return task.walkthrough or tuple(json.loads(Path(task.game_file).read_bytes())["walkthrough"])


def _command(rng: random.Random, admissible: tuple[str, ...], *, garbage: bool) -> str:
    """Rare verbs as often as frequent ones; garbage is often nearly a command."""
    if not garbage:
        verb = rng.choice(sorted({command.split()[0] for command in admissible}))
        return rng.choice([command for command in admissible if command.split()[0] == verb])
    command = rng.choice(admissible)
    return rng.choice([*GARBAGE, command + " ", " " + command, command.upper(), command[:-1]])
