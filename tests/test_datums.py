"""Trajectories and advantages become what an update trains on."""

import math
from dataclasses import replace

import numpy as np
import pytest

from agentic_rl import datums
from agentic_rl.types import (
    Completion,
    EnvStep,
    RewardSignal,
    ScoredGroup,
    Span,
    Step,
    StopReason,
    Task,
    Trajectory,
    TrajectoryGroup,
)

TASK = Task("game", "train", "pick", "", "")


def _step(segment: int, start: int, tokens: tuple[int, ...]) -> Step:
    logprobs = tuple(-0.1 * (number + 1) for number in range(len(tokens)))
    said = Completion(tokens, logprobs, "", "stop", f"s{segment}.{start}")
    result = EnvStep("", ())
    end = start + len(tokens)
    return Step("", (), None, said, "a", False, False, result, segment, start, end)


def _trajectory(branch: int, segments: list[list[int]], steps: list[Step]) -> Trajectory:
    shown = tuple(map(tuple, segments))
    return Trajectory(TASK, "g", branch, tuple(steps), shown, False, StopReason.MAX_STEPS)


GROWN = _trajectory(0, [[1, 2, 5, 6, 3, 7]], [_step(0, 2, (5, 6)), _step(0, 5, (7,))])
SPLIT = _trajectory(1, [[1, 5], [1, 2, 6, 7]], [_step(0, 1, (5,)), _step(1, 2, (6, 7))])
SILENT = _trajectory(2, [[1, 2, 9]], [_step(0, 2, (9,))])


def _group(*trajectories: Trajectory) -> ScoredGroup:
    signals = tuple(
        RewardSignal((0.0,) * len(t.steps), (0.0,) * len(t.steps)) for t in trajectories
    )
    return ScoredGroup(TrajectoryGroup(TASK, trajectories), signals, len(trajectories))


def test_mask_logprobs_and_advantages_lie_on_the_sampled_tokens_only() -> None:
    batch, counts = datums.build([_group(GROWN)], [[[0.5, -2.0]]])
    (datum,) = batch.data
    assert datum.tokens.tolist() == [1, 2, 5, 6, 3, 7]
    assert datum.loss_mask.tolist() == [0, 0, 1, 1, 0, 1]
    assert datum.advantages.tolist() == [0, 0, 0.5, 0.5, 0, -2.0]
    assert datum.old_logprobs.tolist() == [0, 0, -0.1, -0.2, 0, -0.1]
    assert datum.spans == (Span(2, 4, "s0.2", 0, 0, 0), Span(5, 6, "s0.5", 0, 0, 1))
    assert counts == datums.BatchCounts(1, 0, 0, 0)


def test_what_carries_no_signal_is_left_out_but_counted() -> None:
    groups = [_group(GROWN, SPLIT, SILENT), _group(SILENT)]
    batch, counts = datums.build(groups, [[[0.0, 1.0], [0.0, 0.5], [0.0]], [[0.0]]])
    # Of SPLIT only the second segment teaches anything.
    assert [datum.spans[0].branch for datum in batch.data] == [0, 1]
    assert batch.data[1].tokens.tolist() == [1, 2, 6, 7]
    assert counts == datums.BatchCounts(
        datums=2, left_out=3, zero_signal_groups=1, extra_segments=1
    )
    assert (batch.tokens, batch.trajectories) == (3 + 3 + 1 + 1, 4)


def test_spans_name_the_group_the_branch_and_the_step() -> None:
    batch, _ = datums.build([_group(SILENT), _group(SPLIT)], [[[0.0]], [[1.0, 1.0]]])
    found = [(s.group, s.branch, s.step) for datum in batch.data for s in datum.spans]
    assert found == [(1, 1, 0), (1, 1, 1)]


def test_an_empty_batch_and_a_trajectory_without_steps() -> None:
    assert datums.build([], [])[0].data == ()
    batch, counts = datums.build([_group(_trajectory(0, [], []))], [[[]]])
    assert batch.data == () and counts.zero_signal_groups == 1 and batch.trajectories == 1


@pytest.mark.parametrize(
    ("trajectory", "row", "message"),
    [
        (GROWN, [1.0], "1 advantages for 2 steps"),
        (GROWN, [1.0, math.nan], "not finite"),
        (GROWN, [math.inf, 0.0], "not finite"),
        (replace(GROWN, segments=((1, 2, 5, 8, 3, 7),)), [1.0, 1.0], "lost its sampled tokens"),
        (replace(GROWN, segments=((1, 2, 5),)), [1.0, 1.0], "lost its sampled tokens"),
        (
            _trajectory(0, [[1, 5, 5]], [_step(0, 1, (5, 5)), _step(0, 2, (5,))]),
            [1.0, 1.0],
            "overlaps another",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    trajectory: Trajectory, row: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        datums.build([_group(trajectory)], [[row]])


def test_shapes_are_checked_by_group_and_branch() -> None:
    for rows in ([], [[[1.0, 1.0]], []], [[[1.0, 1.0], [0.0]]]):
        with pytest.raises(ValueError, match="argument"):
            datums.build([_group(GROWN)], rows)


def test_arrays_are_of_one_length() -> None:
    batch, _ = datums.build([_group(GROWN, SPLIT)], [[[1.0, 1.0], [1.0, 1.0]]])
    for datum in batch.data:
        lengths = {
            len(a) for a in (datum.tokens, datum.loss_mask, datum.old_logprobs, datum.advantages)
        }
        assert lengths == {len(datum.tokens)}
        assert np.array_equal(datum.loss_mask > 0, datum.old_logprobs < 0)
