"""GRPO: a trajectory's return, centred by its group and divided by a standard deviation."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import (
    centred,
    checked,
    deviation,
    one_of,
    spread,
    unbaselined,
)
from agentic_rl.types import Advantages, ScoredGroup


@advantages.register("group_normalized")
@dataclass(frozen=True)
class GroupNormalized:
    """A_i = (r_i - mean(r)) / (std(r) + eps)

    The mean is always the group's; `scope` says whose standard deviation divides.
    """

    ddof: int = 1
    eps: float = 1e-6
    scope: str = "group"
    singleton: str = "zero"

    def __post_init__(self) -> None:
        one_of("scope", self.scope, ("group", "batch"))
        one_of("singleton", self.singleton, ("raw", "zero"))

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages:
        """Statistics are over the trajectories that are there; dropped ones count in nothing."""
        checked(batch)
        everyone = [value for group in batch for value in group.returns]
        shared = deviation(everyone, self.ddof) if self.scope == "batch" else None
        return [spread(group, self._values(group, shared)) for group in batch]

    def _values(self, group: ScoredGroup, shared: float | None) -> list[float]:
        returns = group.returns
        if unbaselined(group, len(returns), self.singleton):
            return list(returns)
        scale = deviation(returns, self.ddof) if shared is None else shared
        if scale == 0.0:
            return [0.0] * len(returns)
        return [value / (scale + self.eps) for value in centred(returns)]
