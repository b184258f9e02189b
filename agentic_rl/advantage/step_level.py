"""GiGPO: the episode against its group, and each step against the steps taken in the same state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import checked, one_of
from agentic_rl.advantage._steps import (
    BASELINES,
    Relative,
    check_shared,
    clusters,
    episode_term,
    fold,
    key_of,
    step_returns,
    steps_of,
)
from agentic_rl.advantage.state_key import StateKey
from agentic_rl.types import Advantages, ScoredGroup


@advantages.register("step_level")
@dataclass(frozen=True)
class StepLevel:
    """A_t = episode_weight * A^E_t + step_weight * A^S_t

    A^E_t = (score of the episode - mean over its group) / F
    A^S_t = (R_t - mean of R over the group's steps in the same state) / F
    R_t = r_t + gamma * R_{t+1}
    F = 1 for normalize=mean, or the standard deviation + eps for mean_std.
    A state that a group meets once gives A^S = 0.
    """

    gamma: float = 0.95
    episode_weight: float = 1.0
    step_weight: float = 1.0
    normalize: str = "mean"
    ddof: int = 1
    eps: float = 1e-6
    baseline: str = "steps"
    singleton: str = "zero"
    penalty: str = "after"
    state_key: Any = "observation"
    repeats: bool = True

    def __post_init__(self) -> None:
        check_shared(self.normalize, self.penalty)
        one_of("baseline", self.baseline, BASELINES)
        one_of("singleton", self.singleton, ("raw", "zero"))
        key_of(self.state_key)

    @property
    def needs(self) -> frozenset[str]:
        return self.key.needs

    @property
    def key(self) -> StateKey:
        return key_of(self.state_key)

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages:
        """Statistics are over the trajectories that are there; dropped ones count in nothing."""
        checked(batch)
        relative = Relative(self.normalize, self.ddof, self.eps)
        key = self.key
        return [fold(group, self._rows(group, relative, key)) for group in batch]

    def _rows(self, group: ScoredGroup, relative: Relative, key: StateKey) -> list[float]:
        episode = episode_term(group, relative, self.baseline, self.penalty, self.singleton)
        step = self._step_term(group, relative, key)
        return [
            self.episode_weight * e + self.step_weight * s
            for e, s in zip(episode, step, strict=True)
        ]

    def _step_term(self, group: ScoredGroup, relative: Relative, key: StateKey) -> list[float]:
        returns = step_returns(group, self.gamma, self.penalty)
        term = [0.0] * len(returns)
        owners = [
            branch
            for branch, trajectory in enumerate(group.group.trajectories)
            for _ in trajectory.steps
        ]
        for rows in clusters(key(steps_of(group))):
            counted = rows if self.repeats else _first_visits(rows, owners)
            if len(counted) < 2:
                continue
            values = relative([returns[row] for row in rows], [returns[row] for row in counted])
            for row, value in zip(rows, values, strict=True):
                term[row] = value
        return term


def _first_visits(rows: Sequence[int], owners: Sequence[int]) -> list[int]:
    """Of the rows in one state, the first of each trajectory."""
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(owners[row], row)
    return list(first.values())
