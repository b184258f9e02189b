"""MaxRL: the rarer success is in a group, the more it weighs."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import centred, checked, mean, spread
from agentic_rl.types import Advantages, ScoredGroup


@advantages.register("max_rl")
@dataclass(frozen=True)
class MaxRl:
    """A_i = (r_i - mean(r)) / mean(r); 0 where mean(r) <= 0

    Meant for rewards that are 0 or above.
    """

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages:
        """The mean is over the trajectories that are there; dropped ones count in nothing."""
        checked(batch)
        return [spread(group, _values(group.returns)) for group in batch]


def _values(returns: Sequence[float]) -> list[float]:
    if not returns or mean(returns) <= 0:
        return [0.0] * len(returns)
    scale = mean(returns)
    return [value / scale for value in centred(returns)]
