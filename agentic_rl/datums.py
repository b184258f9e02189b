"""Trajectories and advantages -> what an update trains on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.types import Advantages, Batch, Completion, Datum, ScoredGroup, Span, Trajectory


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
    count its tokens and its trajectory. Raises ValueError where shapes differ, a token was not
    sampled as its step says, two steps share a token, or an advantage is not finite.
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
    where = f"{trajectory.task.task_id} branch {trajectory.branch}"
    if len(advantages) != len(trajectory.steps):
        raise ValueError(
            f"{len(advantages)} advantages for {len(trajectory.steps)} steps of {where}"
        )
    if not np.all(np.isfinite(advantages)):
        raise ValueError(f"an advantage of {where} is not finite: {list(advantages)}")
    if not trajectory.segments:
        return []
    drafts = [_Draft.of(segment) for segment in trajectory.segments]
    for number, (step, advantage) in enumerate(zip(trajectory.steps, advantages, strict=True)):
        span = Span(
            step.prompt_end,
            step.completion_end,
            step.completion.sample_id,
            group,
            trajectory.branch,
            number,
        )
        drafts[step.segment].add(span, step.completion, advantage)
    return [draft.datum() for draft in drafts]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A Datum while its spans are filled in."""

    tokens: NDArray[np.int64]
    mask: NDArray[np.float64]
    logprobs: NDArray[np.float64]
    credit: NDArray[np.float64]
    spans: list[Span]

    @classmethod
    def of(cls, segment: Sequence[int]) -> "_Draft":
        tokens, n = np.asarray(segment, dtype=np.int64), len(segment)
        return cls(tokens, np.zeros(n), np.zeros(n), np.zeros(n), [])

    def add(self, span: Span, completion: Completion, advantage: float) -> None:
        place = slice(span.start, span.end)
        if self.tokens[place].tolist() != list(completion.tokens):
            raise ValueError(f"step {span.step} of branch {span.branch} lost its sampled tokens")
        if self.mask[place].any():
            raise ValueError(f"step {span.step} of branch {span.branch} overlaps another")
        self.mask[place] = 1.0
        self.logprobs[place] = completion.logprobs
        self.credit[place] = advantage
        self.spans.append(span)

    def datum(self) -> Datum:
        return Datum(self.tokens, self.mask, self.logprobs, self.credit, tuple(self.spans))
