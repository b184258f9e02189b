"""A thousand random schedules of failures."""

import asyncio
import random

import pytest

from agentic_rl.config import RolloutConfig
from agentic_rl.group import cancel
from agentic_rl.rollout import Collector
from agentic_rl.tokens import Codec
from agentic_rl.types import StopReason, Trajectory, TrajectoryGroup
from agentic_rl.watchdog import StalledError
from tests.scripted_world import (
    ENV_FAULTS,
    SAMPLE_FAULTS,
    SAMPLING,
    ScriptedPool,
    ScriptedSampler,
    config,
    plan,
)

SCHEDULES = 1000
PLANS = [plan(number, 2) for number in range(2)]
_SAMPLER = ScriptedSampler()
_CODEC = Codec(_SAMPLER.tokenizer, _SAMPLER.protocol)


def _collector(sampler: ScriptedSampler, pool: ScriptedPool, settings: RolloutConfig) -> Collector:
    return Collector(pool, sampler.protocol, sampler, settings, codec=_CODEC)  # type: ignore[arg-type]


async def _expected() -> list[TrajectoryGroup]:
    return await _collector(ScriptedSampler(), ScriptedPool(), config(max_steps=3)).collect(
        PLANS, SAMPLING
    )


def _played(entry: Trajectory) -> tuple[object, ...]:
    return (entry.steps, entry.segments, entry.won, entry.stop_reason, entry.error)


async def _schedule(seed: int, expected: list[TrajectoryGroup]) -> str:
    """One schedule; says what became of it."""
    rng = random.Random(seed)
    planned = {
        (rng.choice(PLANS).task.task_id, rng.randrange(2), rng.randrange(3)): rng.choice(
            SAMPLE_FAULTS
        )
        for _ in range(rng.randrange(5))
    }
    at_env = {
        (rng.choice(PLANS).task.task_id, rng.randrange(4)): rng.choice(ENV_FAULTS)
        for _ in range(rng.randrange(3))
    }
    stubborn = rng.random() < 0.3
    # Nothing here is slow but what never answers.
    delay = (lambda: 0.0) if rng.random() < 0.8 else (lambda: rng.random() / 2000)
    at_sampler = dict(planned)
    sampler = ScriptedSampler(faults=planned, stubborn=stubborn, delay=delay)
    pool = ScriptedPool(faults=at_env, delay=delay)
    settings = config(
        on_error=rng.choice(("retry", "drop")),
        retries=rng.randrange(3),
        concurrency=rng.choice((1, 2, 64)),
        timeout=0.08,
        max_steps=3,
    )
    ended: list[tuple[str, int]] = []
    work = asyncio.create_task(
        _collector(sampler, pool, settings).collect(
            PLANS,
            SAMPLING,
            on_finished=lambda entry: ended.append((entry.task.task_id, entry.branch)),
        )
    )
    if rng.random() < 0.2:
        for _ in range(rng.randrange(60)):
            await asyncio.sleep(0)
        await cancel([work])
    try:
        groups = await work
    except asyncio.CancelledError:
        return "cancelled"
    except StalledError:
        silent = [*at_sampler.values(), *at_env.values()]
        assert sum(fault in ("answers_nothing", "step_times_out") for fault in silent) > 1
        return "stalled"
    finally:
        assert not pool.live and not pool.twice and not sampler.running
    every = [entry for group in groups for entry in group.trajectories]
    keys = [(p.task.task_id, branch) for p in PLANS for branch in p.branches]
    assert [(entry.task.task_id, entry.branch) for entry in every] == keys
    assert sorted(ended) == sorted(keys)
    assert sum(entry.prefill for entry in every) == sampler.usage.prefill
    assert sum(entry.sampled for entry in every) == sampler.usage.sampled
    wanted = [entry for group in expected for entry in group.trajectories]
    for entry, other in zip(every, wanted, strict=True):
        if entry.failed:
            assert entry.stop_reason in (StopReason.ENV_ERROR, StopReason.SAMPLE_ERROR)
            assert entry.steps == () and not entry.won
            assert entry.attempts == entry.env_errors + entry.sample_errors > 0
        else:
            assert _played(entry) == _played(other)
            assert entry.attempts == entry.env_errors + entry.sample_errors + 1
    return "failed" if any(entry.failed for entry in every) else "whole"


async def _run_all() -> list[str]:
    """Many at a time: most of a schedule's time is waiting for what never answers."""
    expected = await _expected()
    slots = asyncio.Semaphore(50)

    async def one(seed: int) -> str:
        async with slots:
            return await _schedule(seed, expected)

    outcomes = await asyncio.wait_for(
        asyncio.gather(*(one(seed) for seed in range(SCHEDULES))), timeout=300
    )
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return outcomes


@pytest.mark.slow
def test_a_thousand_schedules_hang_nowhere_and_lose_nothing() -> None:
    outcomes = asyncio.run(_run_all())
    assert len(outcomes) == SCHEDULES
    # All three kinds are met often, or the test would show little.
    assert min(outcomes.count(kind) for kind in ("cancelled", "failed", "whole")) > SCHEDULES // 20
