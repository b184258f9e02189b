"""What step-level estimators share: rows, their returns, and the episode's term."""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rl.advantage._groups import deviation, discounted, mean, one_of, unbaselined
from agentic_rl.advantage.state_key import StateKey, build
from agentic_rl.errors import ConfigError
from agentic_rl.types import RewardSignal, ScoredGroup, Step

PENALTIES = ("after", "return")
NORMALIZATIONS = ("mean", "mean_std")
BASELINES = ("steps", "trajectories")


@dataclass(frozen=True, slots=True)
class Relative:
    """How values are set against a baseline: their mean comes off, their deviation may divide."""

    normalize: str
    ddof: int
    eps: float

    def __call__(self, values: Sequence[float], baseline: Sequence[float]) -> list[float]:
        centre = mean(baseline)
        if self.normalize == "mean":
            return [value - centre for value in values]
        scale = deviation(baseline, self.ddof) + self.eps
        return [(value - centre) / scale for value in values]


def key_of(spec: Any) -> StateKey:
    """The state key that an estimator's field names; ConfigError where it names none."""
    if not isinstance(spec, str | Mapping):
        raise ConfigError(f"state_key={spec} is neither a name nor {{name: ..., option: value}}")
    return build(spec)


def steps_of(group: ScoredGroup) -> list[Step]:
    """All rows of a group: trajectory by trajectory, step by step."""
    return [step for trajectory in group.group.trajectories for step in trajectory.steps]


def fold(group: ScoredGroup, rows: Sequence[float]) -> list[list[float]]:
    """Rows back into [i][t]."""
    folded, start = [], 0
    for trajectory in group.group.trajectories:
        folded.append(list(rows[start : start + len(trajectory.steps)]))
        start += len(trajectory.steps)
    return folded


def clusters(labels: Sequence[Hashable]) -> list[list[int]]:
    """The rows of each label, in order of first sight; a label of None belongs nowhere."""
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, label in enumerate(labels):
        members[label].append(row)
    members.pop(None, None)
    return list(members.values())


def step_returns(group: ScoredGroup, gamma: float, penalty: str) -> list[float]:
    """Discounted, one a row; penalties on their own row only, or discounted with the rest."""
    rows: list[float] = []
    for signal in group.signals:
        if penalty == "return":
            rows += discounted(_together(signal), gamma)
        else:
            returns = discounted(signal.task, gamma)
            rows += [g + p for g, p in zip(returns, signal.penalties, strict=True)]
    return rows


def episode_term(
    group: ScoredGroup, relative: Relative, baseline: str, penalty: str, singleton: str
) -> list[float]:
    """The episode's score on each of its rows, set against the group.

    With `penalty=after` a row's score is the episode's task reward and that row's own penalty; with
    `return` it is the episode's whole return. The baseline holds a score per row, or one per
    trajectory without the penalties of single rows.
    """
    rows: list[float] = []
    scores: list[float] = []
    for signal in group.signals:
        if penalty == "return":
            score, own = signal.total, [0.0] * len(signal.task)
        else:
            score, own = math.fsum(signal.task), list(signal.penalties)
        scores.append(score)
        rows += [score + value for value in own]
    against = rows if baseline == "steps" else scores
    if not rows or unbaselined(group, len(against), singleton):
        return rows
    return relative(rows, against) if len(against) > 1 else [0.0] * len(rows)


def check_shared(normalize: str, penalty: str) -> None:
    one_of("normalize", normalize, NORMALIZATIONS)
    one_of("penalty", penalty, PENALTIES)


def _together(signal: RewardSignal) -> list[float]:
    return [reward + penalty for reward, penalty in zip(signal.task, signal.penalties, strict=True)]
