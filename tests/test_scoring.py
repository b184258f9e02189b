"""Failures leave their group, and nobody else's baseline."""

from dataclasses import replace

import pytest

from agentic_rl import scoring
from agentic_rl.advantage.group_mean import GroupMean
from agentic_rl.config import RolloutConfig
from agentic_rl.reward.success_minus_invalid import SuccessMinusInvalid
from agentic_rl.types import (
    Completion,
    EnvStep,
    Step,
    StopReason,
    Task,
    Trajectory,
    TrajectoryGroup,
)

TASK = Task("game", "train", "pick", "", "")
WON, STEPS, TOKENS = StopReason.WON, StopReason.MAX_STEPS, StopReason.MAX_TRAJECTORY_TOKENS
FAILED = (StopReason.ENV_ERROR, StopReason.SAMPLE_ERROR)


def _trajectory(branch: int, reason: StopReason, *, invalid: bool = False) -> Trajectory:
    won, error = reason is WON, "broken" if reason in FAILED else None
    result = EnvStep("", (), admissible=not invalid, done=won, won=won)
    step = Step("", (), None, Completion((), (), "", "stop"), "a", False, False, result)
    steps = () if error else (step,)
    return Trajectory(TASK, "g", branch, steps, (), won, reason, error)


def _group(*reasons: StopReason, invalid: bool = False) -> TrajectoryGroup:
    entries = [_trajectory(n, reason, invalid=invalid) for n, reason in enumerate(reasons)]
    return TrajectoryGroup(TASK, tuple(entries))


def _score(*groups: TrajectoryGroup, **fields: object) -> scoring.Survivors:
    return scoring.score(groups, SuccessMinusInvalid(), RolloutConfig(**fields))  # type: ignore[arg-type]


def test_a_failed_branch_leaves_and_the_planned_size_stays() -> None:
    (group,) = _score(_group(WON, FAILED[0], STEPS, FAILED[1])).groups
    assert [entry.branch for entry in group.group.trajectories] == [0, 2]
    assert group.returns == (1.0, 0.0) and group.planned_size == 4


@pytest.mark.parametrize(("alive", "kept"), [(1, False), (2, True), (3, True)])
def test_a_group_below_min_group_is_dropped_whole(alive: int, kept: bool) -> None:
    reasons = [WON] * alive + [FAILED[0]] * (3 - alive)
    survivors = _score(_group(WON, STEPS), _group(*reasons), min_group=2)
    assert len(survivors.groups) == 1 + kept
    assert survivors.groups_dropped == 1 - kept


def test_no_groups_is_no_error() -> None:
    survivors = _score()
    assert survivors.groups == () and survivors.groups_dropped == 0
    assert scoring.estimate((), GroupMean(), RolloutConfig()) == []


@pytest.mark.parametrize("reason", [STEPS, TOKENS])
def test_zero_takes_the_task_reward_of_the_truncated_and_leaves_penalties(
    reason: StopReason,
) -> None:
    class Generous(SuccessMinusInvalid):
        def __call__(self, trajectory: Trajectory) -> object:  # type: ignore[override]
            return replace(super().__call__(trajectory), task=(0.7,) * len(trajectory.steps))

    group = _group(WON, reason, invalid=True)
    for truncation, expected in (("keep", (0.6, 0.6)), ("zero", (0.6, -0.1)), ("mask", (0.6, 0.6))):
        config = RolloutConfig(truncation=truncation)
        (scored,) = scoring.score([group], Generous(), config).groups  # type: ignore[arg-type]
        assert scored.returns == pytest.approx(expected)


@pytest.mark.parametrize("reason", [STEPS, TOKENS])
def test_mask_teaches_nothing_from_the_truncated_and_keeps_the_baseline(reason: StopReason) -> None:
    groups = _score(_group(WON, reason, WON)).groups
    kept = scoring.estimate(groups, GroupMean(), RolloutConfig(truncation="keep"))
    masked = scoring.estimate(groups, GroupMean(), RolloutConfig(truncation="mask"))
    assert kept[0][1][0] < 0 and list(masked[0][1]) == [0.0]
    assert masked[0][0] == kept[0][0] and masked[0][2] == kept[0][2]
