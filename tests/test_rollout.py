"""Collections as a whole: order, limits, failures, cleaning up."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agentic_rl import datums
from agentic_rl.errors import BackendError, EnvError, IntegrityError
from agentic_rl.group import prove_alike
from agentic_rl.hashing import stable_hash
from agentic_rl.protocol.think_action import ThinkAction
from agentic_rl.protocol.tool_call import ToolCall
from agentic_rl.rollout import Collector
from agentic_rl.training import Usage
from agentic_rl.types import (
    EnvStep,
    RewardSignal,
    ScoredGroup,
    StateFacts,
    StopReason,
    Task,
    TrajectoryGroup,
)
from agentic_rl.watchdog import StalledError
from tests.scripted_world import (
    ENV_FAULTS,
    SAMPLE_FAULTS,
    SAMPLING,
    ScriptedPool,
    ScriptedSampler,
    collect,
    config,
    plan,
)

PLANS = [plan(number, 3) for number in range(3)]


def _played(**fields: Any) -> list[TrajectoryGroup]:
    return collect(PLANS, ScriptedSampler(), ScriptedPool(), config(**fields))


def _delays(seed: int, most: float) -> Callable[[], float]:
    rng = random.Random(seed)
    return lambda: most * rng.random()


def _total(groups: list[TrajectoryGroup]) -> Usage:
    every = [entry for group in groups for entry in group.trajectories]
    return Usage(prefill=sum(e.prefill for e in every), sampled=sum(e.sampled for e in every))


def test_the_same_rollouts_whatever_the_order_and_the_concurrency() -> None:
    expected = _played()
    for seed in range(5):
        delay = _delays(seed, 0.002)
        sampler, pool = ScriptedSampler(delay=delay), ScriptedPool(delay=delay)
        found = collect(PLANS, sampler, pool, config(concurrency=1 + seed * 3))
        assert found == expected
        assert sampler.most_running <= 1 + seed * 3


def test_the_first_turn_is_one_request_and_no_other_is_shared() -> None:
    sampler = ScriptedSampler()
    groups = collect(PLANS, sampler, ScriptedPool(), config())
    first = [request for request in sampler.requests if request[2] == 0]
    assert first == [(entry.task.task_id, 0, 0, 3) for entry in PLANS]
    assert all(request[3] == 1 for request in sampler.requests if request[2] > 0)
    assert len(set(sampler.requests)) == len(sampler.requests)
    assert _total(groups) == sampler.usage


def test_nobody_waits_for_the_slowest() -> None:
    """One branch that takes its time holds up neither its group nor the others."""
    ended: list[tuple[str, int]] = []

    class Slow(ScriptedSampler):
        async def sample(self, prompt: Any, n: int, params: Any) -> Any:
            if (prompt.task.task_id, prompt.branch) == (PLANS[0].task.task_id, 1) and prompt.turn:
                while len(ended) < 8:
                    await asyncio.sleep(0.001)
            return await super().sample(prompt, n, params)

    collect(
        PLANS,
        Slow(),
        ScriptedPool(),
        config(),
        on_finished=lambda entry: ended.append((entry.task.task_id, entry.branch)),
    )
    assert ended[-1] == (PLANS[0].task.task_id, 1) and len(set(ended)) == 9


def test_groups_are_told_in_the_order_of_the_plans() -> None:
    told: list[str] = []
    groups = collect(
        PLANS,
        ScriptedSampler(delay=_delays(3, 0.005)),
        ScriptedPool(),
        config(),
        on_group=lambda group: told.append(group.task.task_id),
    )
    assert told == [entry.task.task_id for entry in PLANS]
    assert [group.task.task_id for group in groups] == told


@pytest.mark.parametrize("fault", SAMPLE_FAULTS[:-1])
@pytest.mark.parametrize("turn", [0, 1])
def test_a_failed_sample_tried_again_changes_nothing_but_the_bill(fault: str, turn: int) -> None:
    task_id = PLANS[1].task.task_id
    sampler = ScriptedSampler(faults={(task_id, 0, turn): fault})
    groups = collect(PLANS, sampler, ScriptedPool(), config())
    assert [_outcome(group) for group in groups] == [_outcome(group) for group in _played()]
    assert _total(groups) == sampler.usage
    failures = [entry.sample_errors for group in groups for entry in group.trajectories]
    # The first turn belongs to the whole group.
    assert failures == [0, 0, 0, *((1, 1, 1) if turn == 0 else (1, 0, 0)), 0, 0, 0]
    assert [entry.attempts for entry in groups[1].trajectories] == [f + 1 for f in failures[3:6]]


def _outcome(group: TrajectoryGroup) -> list[tuple[Any, ...]]:
    return [
        (entry.branch, entry.steps, entry.segments, entry.stop_reason, entry.error)
        for entry in group.trajectories
    ]


@pytest.mark.parametrize("fault", SAMPLE_FAULTS[:-1])
def test_drop_ends_one_trajectory_and_no_other(fault: str) -> None:
    sampler = ScriptedSampler(faults={(PLANS[1].task.task_id, 2, 1): fault})
    groups = collect(PLANS, sampler, ScriptedPool(), config(on_error="drop"))
    expected = _played()
    for number, group in enumerate(groups):
        for entry, other in zip(group.trajectories, expected[number].trajectories, strict=True):
            if (number, entry.branch) != (1, 2):
                assert entry == other
    lost = groups[1].trajectories[2]
    assert lost.failed and lost.stop_reason is StopReason.SAMPLE_ERROR
    assert (lost.steps, lost.segments, lost.won, lost.attempts) == ((), (), False, 1)
    assert "sampling turn 1 of" in (lost.error or "")
    assert _total(groups) == sampler.usage


def test_retries_end() -> None:
    task_id = PLANS[0].task.task_id
    sampler = ScriptedSampler(faults={(task_id, 1, 1): "raises"}, stubborn=True)
    groups = collect(PLANS[:1], sampler, ScriptedPool(), config(retries=2))
    lost = groups[0].trajectories[1]
    assert (lost.attempts, lost.sample_errors) == (3, 3)
    assert [entry.failed for entry in groups[0].trajectories] == [False, True, False]
    assert _total(groups) == sampler.usage


def test_fail_ends_the_run_at_the_first_failure() -> None:
    sampler = ScriptedSampler(faults={(PLANS[0].task.task_id, 1, 1): "raises"})
    with pytest.raises(BackendError, match=r"rollout\.on_error=fail: BackendError: the service"):
        collect(PLANS, sampler, ScriptedPool(), config(on_error="fail"))
    pool = ScriptedPool(faults={(PLANS[0].task.task_id, 1): "step_raises"})
    with pytest.raises(EnvError, match=r"rollout\.on_error=fail: ValueError: a bug"):
        collect(PLANS, ScriptedSampler(), pool, config(on_error="fail"))


def test_where_nothing_more_can_succeed_the_run_ends_whatever_the_recipe_says() -> None:
    class Gone(BackendError):
        hopeless = True

    class Sampler(ScriptedSampler):
        async def _fail_before(self, fault: str | None) -> None:
            if fault:
                raise Gone("the key has expired")

    sampler = Sampler(faults={(PLANS[0].task.task_id, 1, 1): "raises"})
    with pytest.raises(Gone, match="expired"):
        collect(PLANS, sampler, ScriptedPool(), config(on_error="retry"))


@pytest.mark.parametrize("fault", ENV_FAULTS)
def test_failing_environments(fault: str) -> None:
    task_id, said = PLANS[1].task.task_id, []
    for stubborn in (False, True):
        faults = {(task_id, -1 if stubborn else 0): fault}
        pool = ScriptedPool(faults=faults, stubborn=stubborn)
        silent = fault == "step_times_out"
        # A whole group silent for twice the timeout would end the run, and rightly.
        limits = config(timeout=0.2 if silent else 30.0, retries=0 if silent and stubborn else 1)
        groups = collect(PLANS, ScriptedSampler(), pool, limits, say=said.append)
        expected = _played()
        whole = fault == "close_raises" or not stubborn
        assert [_outcome(g) for g in groups[::2]] == [_outcome(g) for g in expected[::2]]
        assert (_outcome(groups[1]) == _outcome(expected[1])) is whole
        if not whole:
            lost = [entry for entry in groups[1].trajectories if entry.failed]
            assert lost and all(entry.stop_reason is StopReason.ENV_ERROR for entry in lost)
    if fault == "close_raises":
        assert any("did not close: RuntimeError: will not close" in line for line in said)


def test_a_group_whose_game_opens_differently_each_time_is_refused() -> None:
    class Shifting(ScriptedPool):
        def make(self, inner: Any, task_id: str) -> Any:
            env = super().make(inner, task_id)
            count = self.opened[task_id]
            if task_id == PLANS[1].task.task_id and count > 1:
                inner._last = EnvStep(f"another room {count}", ("look",))
            return env

    groups = collect(PLANS, ScriptedSampler(), Shifting(), config())
    assert _outcome(groups[0]) == _outcome(_played()[0])
    for entry in groups[1].trajectories:
        assert entry.stop_reason is StopReason.ENV_ERROR and entry.attempts == 1
        assert "differ in their first observation" in (entry.error or "")
        assert "Welcome" in (entry.error or "") and "another room 2" in (entry.error or "")


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (EnvStep("b", ("look",), state=StateFacts("1", (), "")), "first observation"),
        (EnvStep("a", ("look",), state=StateFacts("2", (), "")), "first state"),
        (EnvStep("a", ("go",), state=StateFacts("1", (), "")), "first prompt"),
    ],
)
def test_branches_are_compared_in_all_that_they_begin_with(other: EnvStep, what: str) -> None:
    start = EnvStep("a", ("look",), state=StateFacts("1", (), ""))
    task = Task("game", "train", "pick", "", "")
    prove_alike(task, [start, start], ToolCall())
    with pytest.raises(IntegrityError, match=f"game differ in their {what}: "):
        prove_alike(task, [start, start, other], ToolCall())


def test_cancelled_at_any_moment_nothing_is_left() -> None:
    async def run(after: int) -> bool:
        delay = _delays(after, 0.001)
        sampler, pool = ScriptedSampler(delay=delay), ScriptedPool(delay=delay)
        collector = Collector(pool, ToolCall(), sampler, config(concurrency=4))  # type: ignore[arg-type]
        work = asyncio.create_task(collector.collect(PLANS, SAMPLING))
        for _ in range(after):
            await asyncio.sleep(0)
        work.cancel()
        try:
            await work
            ended = True
        except asyncio.CancelledError:
            ended = False
        assert not pool.live and not pool.twice and not sampler.running
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return ended

    assert not any(asyncio.run(run(after)) for after in range(0, 120, 3))


def test_a_sampler_that_never_answers_is_named() -> None:
    faults = {(entry.task.task_id, 0, 0): "answers_nothing" for entry in PLANS}
    said: list[str] = []
    sampler = ScriptedSampler(faults=faults, stubborn=True)
    with pytest.raises(StalledError) as caught:
        collect(PLANS, sampler, ScriptedPool(), config(timeout=0.1, retries=9), say=said.append)
    for text in (said[0], str(caught.value)):
        assert f"sampling turn 0 of {PLANS[0].task.task_id} branch 0 for" in text
    assert "rollout.timeout" in str(caught.value)


def test_one_sample_that_never_comes_fails_its_own_trajectory() -> None:
    sampler = ScriptedSampler(faults={(PLANS[1].task.task_id, 1, 1): "answers_nothing"})
    groups = collect(PLANS, sampler, ScriptedPool(), config(timeout=0.2, on_error="drop"))
    assert "TimeoutError: no answer for 0.2 s" in (groups[1].trajectories[1].error or "")
    assert sum(entry.failed for group in groups for entry in group.trajectories) == 1


def test_an_environment_that_fails_to_close_while_cancelled_stops_no_other() -> None:
    async def run() -> None:
        task_id = PLANS[0].task.task_id
        pool = ScriptedPool(faults={(task_id, number): "close_raises" for number in range(9)})
        sampler = ScriptedSampler(faults={(task_id, 0, 0): "answers_nothing"})
        collector = Collector(pool, ToolCall(), sampler, config())  # type: ignore[arg-type]
        work = asyncio.create_task(collector.collect(PLANS[:1], SAMPLING))
        while not sampler.running:
            await asyncio.sleep(0)
        assert len(pool.live) == 3
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert not pool.live

    asyncio.run(run())


def _first_prompt() -> int:
    return len(_first_prompt_of(ScriptedSampler()))


def _first_prompt_of(sampler: ScriptedSampler) -> list[int]:
    collect(PLANS[:1], sampler, ScriptedPool(), config(max_steps=1))
    return sampler.prompts[PLANS[0].task.task_id, 0, 0]


def test_a_first_prompt_fits_or_misses_by_one_token() -> None:
    length = _first_prompt()
    fits, misses = (
        collect(PLANS[:1], sampler, ScriptedPool(), config(max_trajectory_tokens=length + extra))
        for sampler, extra in ((ScriptedSampler(), 1), (ScriptedSampler(), 0))
    )
    for entry in fits[0].trajectories:
        (step,) = entry.steps
        assert step.cut and len(step.completion.tokens) == 1 and not step.malformed
        assert entry.stop_reason is StopReason.MAX_TRAJECTORY_TOKENS
        assert len(entry.segments[0]) == length + 1
    for entry in misses[0].trajectories:
        assert (entry.steps, entry.segments) == ((), ())
        assert entry.stop_reason is StopReason.MAX_TRAJECTORY_TOKENS and not entry.failed


def test_a_later_prompt_fits_or_misses_by_one_token() -> None:
    sampler = ScriptedSampler()
    task = plan(0, 1)
    (whole,) = collect([task], sampler, ScriptedPool(), config())[0].trajectories
    length = len(sampler.prompts[task.task.task_id, 0, 2])
    for extra, turns in ((1, 3), (0, 2)):
        settings = config(max_trajectory_tokens=length + extra)
        (entry,) = collect([task], ScriptedSampler(), ScriptedPool(), settings)[0].trajectories
        assert len(entry.steps) == turns
        assert entry.steps[:2] == whole.steps[:2]
        assert entry.stop_reason is StopReason.MAX_TRAJECTORY_TOKENS
        # What was not sampled behind the last reply is not kept.
        assert len(entry.segments[0]) == entry.steps[-1].completion_end <= length + extra


def test_a_reply_cut_by_its_own_limit_is_a_step_and_the_game_goes_on() -> None:
    groups = collect(PLANS, ScriptedSampler(), ScriptedPool(), config(max_turn_tokens=3))
    for group in groups:
        for entry in group.trajectories:
            assert len(entry.steps) == 4 and entry.stop_reason is StopReason.MAX_STEPS
            assert all(step.cut and not step.malformed for step in entry.steps)
            assert entry.invalid_actions == 0


def test_max_steps_is_reached_exactly() -> None:
    for group in _played(max_steps=2):
        for entry in group.trajectories:
            assert len(entry.steps) == 2 or entry.won
            assert entry.won is (entry.stop_reason is StopReason.WON)


@pytest.mark.parametrize(
    ("protocol", "template"),
    [(ToolCall(), "chatml"), (ThinkAction(), "chatml"), (ToolCall(), "plain")],
)
def test_what_is_trained_on_is_what_was_prompted_and_sampled(protocol: Any, template: str) -> None:
    sampler = ScriptedSampler(protocol=protocol, template=template)
    groups = collect(PLANS, sampler, ScriptedPool(), config())
    scored = [
        ScoredGroup(
            group,
            tuple(
                RewardSignal((1.0,) * len(e.steps), (0.0,) * len(e.steps))
                for e in group.trajectories
            ),
            3,
        )
        for group in groups
    ]
    ones = [[[1.0] * len(e.steps) for e in group.trajectories] for group in groups]
    batch, counts = datums.build(scored, ones)
    seen = 0
    for datum in batch.data:
        for span in datum.spans:
            entry = groups[span.group].trajectories[span.branch]
            sampled = entry.steps[span.step].completion
            assert tuple(datum.tokens[span.start : span.end].tolist()) == sampled.tokens
            branch = span.branch if span.step else 0
            prompt = sampler.prompts[entry.task.task_id, branch, span.step]
            assert datum.tokens[: span.start].tolist() == prompt
            seen += 1
    steps = sum(len(e.steps) for group in groups for e in group.trajectories)
    assert seen == steps
    window = not protocol.keeps_full_history
    assert counts.extra_segments == (steps - 9 if window else 0)
    assert batch.tokens == sum(int(datum.loss_mask.sum()) for datum in batch.data)


def test_every_sample_has_a_seed_of_its_own() -> None:
    seeds: dict[tuple[str, int, int], int] = {}

    class Noting(ScriptedSampler):
        async def sample(self, prompt: Any, n: int, params: Any) -> Any:
            seeds[prompt.task.task_id, prompt.branch, prompt.turn] = params.seed
            return await super().sample(prompt, n, params)

    collect(PLANS, Noting(), ScriptedPool(), config())
    assert len(set(seeds.values())) == len(seeds) > 20
    for (task_id, branch, turn), seed in seeds.items():
        assert seed == stable_hash(0, "train", 1, task_id, branch, turn)
    other = replace(SAMPLING, update=2)
    task = PLANS[0].task
    assert other.params(task, 0, 0, 9).seed != SAMPLING.params(task, 0, 0, 9).seed


def test_no_more_games_are_open_than_may_sample() -> None:
    most = 0

    class Counting(ScriptedPool):
        def make(self, inner: Any, task_id: str) -> Any:
            nonlocal most
            env = super().make(inner, task_id)
            most = max(most, len(self.live))
            return env

    plans = [plan(number, 1) for number in range(9)]
    pool = Counting(delay=_delays(1, 0.001))
    collect(plans, ScriptedSampler(), pool, config(concurrency=2))
    assert most == 2
