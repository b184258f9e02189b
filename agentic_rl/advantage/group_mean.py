"""Each trajectory's return against the mean of its group."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import centred, checked, spread
from agentic_rl.types import Advantages, ScoredGroup


@advantages.register("group_mean")
@dataclass(frozen=True)
class GroupMean:
    """A_i = r_i - mean(r)

    A group of one gets 0, and so does a group of equal returns.
    """

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages:
        """The mean is over the trajectories that are there; dropped ones count in nothing."""
        checked(batch)
        return [spread(group, centred(group.returns)) for group in batch]
