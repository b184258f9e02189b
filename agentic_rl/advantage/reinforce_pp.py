"""REINFORCE++: returns whitened over the tokens of the whole batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import (
    centred,
    checked,
    discounted,
    one_of,
    spread,
    unbaselined,
)
from agentic_rl.types import Advantages, RewardSignal, ScoredGroup


@advantages.register("reinforce_pp")
@dataclass(frozen=True)
class ReinforcePp:
    """A_t = (G_t - mean(G)) / sqrt(var(G) + eps), mean and variance over all sampled tokens

    baseline=none: G_t is the return from step t on, discounted by gamma a step.
    baseline=group: G_t is the trajectory's return less its group's mean, the same for every step.
    Each step weighs as many tokens as were sampled in it; the variance is unbiased.
    """

    baseline: str = "none"
    gamma: float = 1.0
    eps: float = 1e-8
    singleton: str = "zero"

    def __post_init__(self) -> None:
        one_of("baseline", self.baseline, ("none", "group"))
        one_of("singleton", self.singleton, ("raw", "zero"))

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages:
        """Statistics are over the trajectories that are there; dropped ones count in nothing."""
        checked(batch)
        returns = [self._returns(group) for group in batch]
        values = [value for group in returns for steps in group for value in steps]
        if not values:
            return returns
        centre, scale = _statistics(values, _weights(batch), self.eps)
        return [[[(g - centre) / scale for g in steps] for steps in group] for group in returns]

    def _returns(self, group: ScoredGroup) -> list[list[float]]:
        if self.baseline == "none":
            return [discounted(_step_rewards(signal), self.gamma) for signal in group.signals]
        raw = unbaselined(group, len(group.signals), self.singleton)
        return spread(group, group.returns if raw else centred(group.returns))


def _step_rewards(signal: RewardSignal) -> list[float]:
    return [reward + penalty for reward, penalty in zip(signal.task, signal.penalties, strict=True)]


def _weights(batch: Sequence[ScoredGroup]) -> list[int]:
    """Sampled tokens of each step; a reply without tokens weighs one."""
    return [
        max(1, len(step.completion.tokens))
        for group in batch
        for trajectory in group.group.trajectories
        for step in trajectory.steps
    ]


def _statistics(values: Sequence[float], weights: Sequence[int], eps: float) -> tuple[float, float]:
    """Weighted mean, and the square root of the unbiased variance + eps."""
    if min(values) == max(values):
        return values[0], 1.0
    total = sum(weights)
    centre = math.fsum(w * g for w, g in zip(weights, values, strict=True)) / total
    squares = math.fsum(w * (g - centre) ** 2 for w, g in zip(weights, values, strict=True))
    return centre, math.sqrt(squares / (total - 1) + eps)
