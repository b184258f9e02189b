"""The toy world against its own games."""

import asyncio

import pytest

from agentic_rl.env.toy import Toy, ToyGame
from agentic_rl.errors import EnvError
from agentic_rl.types import Task


def _task(task_id: str) -> Task:
    return Task(task_id, "train", "toy", "", "")


@pytest.mark.parametrize("kind", ["find", "move"])
@pytest.mark.parametrize("seed", range(20))
def test_the_walkthrough_wins_at_its_end_and_not_before(kind: str, seed: int) -> None:
    async def play() -> list[bool]:
        env = await Toy().open(_task(f"toy-{kind}-5-{seed}"))
        won = [(await env.reset()).won]
        for action in ToyGame.of(f"toy-{kind}-5-{seed}").walkthrough:
            result = await env.step(action)
            assert result.admissible
            won.append(result.won)
        return won

    *before, last = asyncio.run(play())
    assert last and not any(before)


def test_a_branch_leaves_its_parent_alone() -> None:
    async def play() -> None:
        env = await Toy().open(_task("toy-move-3-1"))
        first = await env.reset()
        other = await env.branch()
        moved = await other.step("go to box 2")
        assert moved.state != first.state
        assert (await env.step("xyzzy")).state == first.state

    asyncio.run(play())


def test_an_inadmissible_action_changes_nothing() -> None:
    async def play() -> None:
        env = await Toy().open(_task("toy-find-3-1"))
        first = await env.reset()
        result = await env.step("eat box 1")
        assert result.observation == "Nothing happens."
        assert not result.admissible
        assert (
            result.admissible_actions
            == first.admissible_actions
            == tuple(sorted(first.admissible_actions))
        )

    asyncio.run(play())


@pytest.mark.parametrize("task_id", ["", "toy-find-3", "toy-eat-3-1", "toy-find-1-1", "a-find-3-1"])
def test_a_foreign_id_is_refused(task_id: str) -> None:
    with pytest.raises(EnvError, match="toy game"):
        ToyGame.of(task_id)


def test_fail_at_fails_that_step() -> None:
    async def play() -> None:
        env = await Toy(fail_at=2).open(_task("toy-find-3-1"))
        await env.step("look")
        with pytest.raises(EnvError, match="fail_at"):
            await env.step("look")

    asyncio.run(play())
