"""Trajectories and advantages -> what an update trains on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentic_rl.types import Advantages, Batch, Datum, ScoredGroup, Span, Trajectory


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What became of a batch: datums trained, datums and whole groups without a signal."""

    datums: int
    left_out: int
    zero_signal_groups: int
    extra_segments: int


def build(groups: Sequence[ScoredGroup], advantages: Advantages) -> tuple[Batch, BatchCounts]:
    """One Datum per segment. `advantages[g][i][t]` is shaped like the groups' steps.

    A Datum whose advantages are all zero is left out and counted; the batch's denominators still
    count its tokens and its trajectory. Raises ValueError where the shapes differ.
    """
    data: list[Datum] = []
    left_out = zero_groups = extra = tokens = trajectories = 0
    for g, (group, rows) in enumerate(zip(groups, advantages, strict=True)):
        kept = 0
        for trajectory, row in zip(group.group.trajectories, rows, strict=True):
            built = _datums(trajectory, row, g)
            signal = [datum for datum in built if np.any(datum.advantages)]
            kept += len(signal)
            left_out += len(built) - len(signal)
            extra += max(0, len(built) - 1)
            tokens += sum(len(step.completion.tokens) for step in trajectory.steps)
            trajectories += 1
            data += signal
        zero_groups += kept == 0
    counts = BatchCounts(len(data), left_out, zero_groups, extra)
    return Batch(tuple(data), tokens, trajectories), counts


def _datums(trajectory: Trajectory, advantages: Sequence[float], group: int) -> list[Datum]:
    if len(advantages) != len(trajectory.steps):
        raise ValueError(f"{len(advantages)} advantages for {len(trajectory.steps)} steps")
    arrays = [
        (
            np.asarray(segment, dtype=np.int64),
            np.zeros(len(segment)),
            np.zeros(len(segment)),
            np.zeros(len(segment)),
        )
        for segment in trajectory.segments
    ]
    spans: list[list[Span]] = [[] for _ in arrays]
    for number, (step, advantage) in enumerate(zip(trajectory.steps, advantages, strict=True)):
        if not arrays:
            continue
        tokens, mask, logprobs, credit = arrays[step.segment]
        place = slice(step.prompt_end, step.completion_end)
        if tuple(tokens[place]) != step.completion.tokens:
            raise ValueError(f"step {number} of {trajectory.task.task_id} lost its sampled tokens")
        mask[place] = 1.0
        logprobs[place] = step.completion.logprobs
        credit[place] = advantage
        spans[step.segment].append(
            Span(
                step.prompt_end,
                step.completion_end,
                step.completion.sample_id,
                group,
                trajectory.branch,
                number,
            )
        )
    return [
        Datum(tokens, mask, logprobs, credit, tuple(where))
        for (tokens, mask, logprobs, credit), where in zip(arrays, spans, strict=True)
    ]
