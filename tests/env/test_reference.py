"""The engine beside TextWorld, and TextWorld's processes."""

import asyncio
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import lighthouse
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentic_rl.env.alfworld import AlfworldEnv
from agentic_rl.env.engine import UnsafeGame
from agentic_rl.env.engine.csg import Each, Expression, Listing, Rule, Text, read_symbols
from agentic_rl.env.reference.compare import Comparison, compare_commands, compare_game
from agentic_rl.env.reference.pool import ReferenceEnv
from agentic_rl.errors import EnvError
from agentic_rl.types import Task

pytestmark = pytest.mark.slow


def _with_pools(
    play: Callable[[AlfworldEnv, AlfworldEnv], Awaitable[None]], workers: int = 1
) -> None:
    async def run() -> None:
        theirs = AlfworldEnv(engine="textworld", workers=workers)
        try:
            await play(AlfworldEnv(), theirs)
        finally:
            await theirs.close()

    asyncio.run(run())


def _compare_all(tasks: list[Task]) -> None:
    async def play(ours: AlfworldEnv, theirs: AlfworldEnv) -> None:
        total = Comparison()
        for task in tasks:
            found = await compare_game(ours, theirs, task, seed=0)
            assert found.won
            total += found
        assert total.mismatches == ()
        assert total.steps > 38 * len(tasks)
        assert ours.fallbacks == 0

    _with_pools(play)


def test_generated_games_play_exactly_as_in_textworld(builtin_tasks: list[Task]) -> None:
    _compare_all(builtin_tasks[::2])


@pytest.mark.real
def test_published_games_play_exactly_as_in_textworld(real_tasks: list[Task]) -> None:
    _compare_all(real_tasks[::2])


def test_our_changes_to_textworld_change_no_result(builtin_tasks: list[Task]) -> None:
    async def run() -> None:
        plain = AlfworldEnv(engine="textworld", workers=1, plain=True)
        try:
            task = builtin_tasks[0]
            found = await compare_game(AlfworldEnv(), plain, task, seed=1)
            assert (found.mismatches, found.won) == ((), True)
        finally:
            await plain.close()

    asyncio.run(run())


def test_another_domain_plays_exactly_as_in_textworld(lighthouse_task: Task) -> None:
    async def play(ours: AlfworldEnv, theirs: AlfworldEnv) -> None:
        wins, verbs = 0, set()
        for seed in range(8):
            commands = await _wander(ours, lighthouse_task, seed)
            verbs |= {command.split()[0] for command in commands}
            found = await compare_commands(ours, theirs, lighthouse_task, commands)
            assert found.mismatches == ()
            wins += found.won
        assert verbs >= {name for name, _, _ in lighthouse._COMMANDS}
        assert ours.fallbacks == 0 < wins

    _with_pools(play)


async def _wander(pool: AlfworldEnv, task: Task, seed: int) -> list[str]:
    """Random commands, those that change much more often."""
    rng, env, commands = random.Random(seed), await pool.open(task), []
    while len(commands) < 50 and not env.last.done:
        verbs = sorted({command.split()[0] for command in env.last.admissible_actions})
        verb = rng.choice(
            verbs + [verb for verb in verbs if verb in ("climb", "carry", "grab")] * 3
        )
        possible = [c for c in env.last.admissible_actions if c.split()[0] == verb]
        commands.append(rng.choice([*possible, *possible, *possible, "bogus"]))
        await env.step(commands[-1])
    return commands


def test_more_episodes_than_workers_take_turns(builtin_tasks: list[Task]) -> None:
    """One worker, four branches in step: each is played again, and compared, when it goes on."""

    async def play(ours: AlfworldEnv, theirs: AlfworldEnv) -> None:
        task = builtin_tasks[0]
        first, ours_first = await theirs.open(task), await ours.open(task)
        assert isinstance(first, ReferenceEnv)
        branches = [await first.branch() for _ in range(3)]
        for command in [*task.walkthrough[:2], "look"]:
            expected = (await ours_first.step(command)).observation
            results = await asyncio.gather(*(env.step(command) for env in (first, *branches)))
            assert {result.observation for result in results} == {expected}

    _with_pools(play)


def _two_actions(tmp_path: Path, action: str, template: str) -> Task:
    """A game where one command stands for two actions."""
    commands = [(n, template if n == action else t, f) for n, t, f in lighthouse._COMMANDS]
    path = tmp_path / f"{action}.tw-pddl"
    path.write_bytes(lighthouse.game(grammar=lighthouse.grammar(commands=commands)))
    return Task(action, "train", "lighthouse", str(path), "")


def test_what_the_engine_refuses_textworld_plays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        pool = AlfworldEnv(workers=1)
        try:
            with caplog.at_level(logging.WARNING):
                at_once = await pool.open(_two_actions(tmp_path, "rest", "quench"))
                assert (at_once.last.observation, pool.fallbacks) != ("", 0)
                # `kindle` is offered in dark rooms only, so this game is refused on the way.
                later = await pool.open(_two_actions(tmp_path, "kindle", "rest"))
                assert pool.fallbacks == 1
                await later.step("quench")
            assert pool.fallbacks == 2
            assert "rest" in later.last.admissible_actions
            assert (await (await later.branch()).step("look")).observation == "Nothing happens."
            assert len(caplog.records) == 1
        finally:
            await pool.close()

    asyncio.run(run())


@pytest.mark.parametrize("engine", ["compiled", "textworld"])
def test_no_engine_evaluates_a_hostile_file(engine: str, tmp_path: Path) -> None:
    planted, path = tmp_path / "planted", tmp_path / "game.tw-pddl"
    text = "{__import__('os').system('touch " + str(planted) + "')}"
    path.write_bytes(lighthouse.game(grammar=lighthouse.grammar({"intro": [{"rhs": text}]})))

    async def run() -> None:
        pool = AlfworldEnv(engine=engine)
        try:
            with pytest.raises(UnsafeGame):
                await pool.open(Task("hostile", "train", "x", str(path), ""))
            assert pool.fallbacks == 0
        finally:
            await pool.close()

    asyncio.run(run())
    assert not planted.exists()


def test_a_worker_that_dies_fails_its_step_alone(builtin_tasks: list[Task]) -> None:
    async def play(ours: AlfworldEnv, theirs: AlfworldEnv) -> None:
        env = await theirs.open(builtin_tasks[0])
        await env.step("look")
        before = env.last
        (worker,) = theirs._shared.reference._workers
        worker._process.kill()
        worker._process.wait()
        assert (await env.step("look")) == before  # played again on a new one
        (worker,) = theirs._shared.reference._workers
        os.kill(worker._process.pid, signal.SIGSTOP)
        worker._timeout = 0.5
        with pytest.raises(EnvError, match="no answer"):
            await env.step("look")
        assert (await env.step("look")) == before

    _with_pools(play)


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def _gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_workers_never_outlive_a_killed_run(builtin_tasks: list[Task]) -> None:
    code = f"""
import asyncio, time
from agentic_rl.env.alfworld import AlfworldEnv
from agentic_rl.types import Task
pool = AlfworldEnv(engine="textworld")
asyncio.run(pool.open(Task("x", "", "", {builtin_tasks[0].game_file!r}, "")))
print("ready", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"ready\n"
        workers = _children(run.pid)
        assert workers
        run.kill()
    assert all(_gone(worker, 10) for worker in workers)


_PIECES = ["a", "b c", "#x#", "#", "{o.name}", "{o | p(a:b)}", "[{o.n + ' ' | p(o:q) & r(o:q)}]"]
_PIECES += [
    "[",
    "]",
    "{",
    "}",
    "|",
    ";",
    '"',
    "\n",
    "\t",
    " ",
    "//",
    "<",
    "\\n",
    "(in/on)",
    ".",
    ",",
]


@example("//\n\t\n")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*_PIECES, "{#y(o)# | p(o:q)}"]), max_size=7).map("".join))
def test_texts_are_read_as_textworld_reads_them(text: str) -> None:
    from textworld.envs.pddl.textgen import _parse_and_convert

    theirs = [_converted(symbol) for symbol in _parse_and_convert(text, rule_name="symbols")]
    assert [part for part in read_symbols(text) if part != Text("")] == [
        part for part in theirs if part != Text("")
    ]


def _converted(symbol: Any) -> Any:
    match type(symbol).__name__:
        case "TerminalSymbol":
            return Text(symbol.symbol)
        case "NonterminalSymbol":
            return Rule(symbol.symbol)
        case "EvalSymbol":
            return Expression(symbol.expression)
        case "ConditionalSymbol":
            return Each(_converted(symbol.expression), symbol.given)
    return Listing(_converted(symbol.symbol))
