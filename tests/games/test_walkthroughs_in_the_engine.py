"""Generated games in the environment: walkthroughs are admissible, and win with their last step."""

import asyncio
from itertools import product

import pytest

from agentic_rl.env import envs
from agentic_rl.games.builtin import BuiltinGames
from agentic_rl.games.builtin.difficulty import DIFFICULTIES
from agentic_rl.interfaces import EnvPool
from agentic_rl.types import Task


async def replay(pool: EnvPool, task: Task) -> None:
    env = await pool.open(task)
    state = await env.reset()
    assert not state.won and state.observation.count("you see a ") >= 1, state.observation
    for command in task.walkthrough:
        assert not state.done, f"{task.task_id}: won before {command!r}"
        assert command in state.admissible_actions, f"{task.task_id}: {command!r}"
        state = await env.step(command)
        assert state.admissible
    assert state.done and state.won, task.task_id
    await env.close()


async def replay_all(tasks: tuple[Task, ...]) -> int:
    pool = envs.build({"name": "alfworld"})
    try:
        for task in tasks:
            await replay(pool, task)
        return pool.fallbacks
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("difficulty", "split"), list(product(DIFFICULTIES, BuiltinGames().splits))
)
def test_every_walkthrough_wins_in_the_compiled_engine(difficulty: str, split: str) -> None:
    games = BuiltinGames(seed=11, difficulty=difficulty, train=6, valid_seen=6, valid_unseen=6)
    assert asyncio.run(replay_all(games.load(split).tasks)) == 0
