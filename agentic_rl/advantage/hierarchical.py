"""HGPO: each step against steps in the same state with ever more of the same recent past."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import checked, one_of
from agentic_rl.advantage._steps import (
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
from agentic_rl.errors import ConfigError
from agentic_rl.types import Advantages, ScoredGroup

DUST = 1e-12
"""A level's value below this is a 0 that was rounded."""


@advantages.register("hierarchical")
@dataclass(frozen=True)
class Hierarchical:
    """A_t = sum_k w_k A^k_t / (sum_k w_k + eps), over the levels k = 1..history+1 with A^k_t != 0

    A^k_t = (R_t - mean of R over the group's steps with the same last k states) / F
    R_t = r_t + gamma * R_{t+1}
    F = 1 for normalize=mean, or the standard deviation + eps for mean_std.
    w_k = (k + 1)^alpha for weights=next, k^alpha for weights=level.
    base_group adds the episode against its group as level 0, of weight 1.
    """

    history: int = 2
    gamma: float = 0.95
    weights: str = "next"
    alpha: float = 1.0
    base_group: bool = False
    normalize: str = "mean_std"
    ddof: int = 0
    eps: float = 1e-6
    penalty: str = "after"
    state_key: Any = "observation"

    def __post_init__(self) -> None:
        check_shared(self.normalize, self.penalty)
        one_of("weights", self.weights, ("next", "level"))
        if self.history < 0:
            raise ConfigError(f"history={self.history} is below 0")
        if not self.eps > 0:
            raise ConfigError(f"eps={self.eps} is not above 0")
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
        key = self.key
        return [fold(group, self._rows(group, key)) for group in batch]

    def _rows(self, group: ScoredGroup, key: StateKey) -> list[float]:
        """Levels whose value is 0 say nothing, so they take no weight either."""
        levels = np.array(self._levels(group, key))
        weighted, total = np.zeros(levels.shape[1]), np.zeros(levels.shape[1])
        for weight, level in zip(self._weights(), levels, strict=True):
            speaks = np.abs(level) > DUST
            weighted += np.where(speaks, weight * level, 0.0)
            total += np.where(speaks, weight, 0.0)
        values: list[float] = np.where(total > 0, weighted / (total + self.eps), 0.0).tolist()
        return values

    def _weights(self) -> list[float]:
        ahead = 1 if self.weights == "next" else 0
        levels = range(1, self.history + 2)
        return [1.0, *(math.pow(level + ahead, self.alpha) for level in levels)]

    def _levels(self, group: ScoredGroup, key: StateKey) -> list[list[float]]:
        """levels[k][row], level 0 being the episode's."""
        returns = step_returns(group, self.gamma, self.penalty)
        relative = Relative(self.normalize, self.ddof, self.eps)
        levels = [self._base(group)]
        for labels in _contexts(group, key, self.history + 1):
            level = [0.0] * len(returns)
            for rows in clusters(labels):
                if len(rows) > 1:
                    values = [returns[row] for row in rows]
                    for row, value in zip(rows, relative(values, values), strict=True):
                        level[row] = value
            levels.append(level)
        return levels

    def _base(self, group: ScoredGroup) -> list[float]:
        """The episode's term as the source has it: over all steps, by the sample's deviation."""
        if not self.base_group:
            return [0.0] * len(steps_of(group))
        relative = Relative(self.normalize, 1, self.eps)
        return episode_term(group, relative, "steps", self.penalty, "zero")


def _contexts(group: ScoredGroup, key: StateKey, depth: int) -> list[list[Hashable]]:
    """For k = 1..depth the label of each row's last k states; None with fewer behind it.

    A context is the pair (context one shorter of the step before, own state), numbered.
    """
    lengths = [len(trajectory.steps) for trajectory in group.group.trajectories]
    states = list(key(steps_of(group)))
    levels: list[list[Hashable]] = [states]
    for _ in range(1, depth):
        numbers: dict[Hashable, int] = {}
        shorter, row = levels[-1], 0
        level: list[Hashable] = []
        for length in lengths:
            for step in range(length):
                before = shorter[row - 1] if step else None
                pair = None if before is None else (before, states[row])
                level.append(None if pair is None else numbers.setdefault(pair, len(numbers)))
                row += 1
        levels.append(level)
    return levels
