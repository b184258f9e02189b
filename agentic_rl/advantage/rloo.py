"""Leave-one-out: each return against the mean of the others."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import centred, checked, one_of, spread, unbaselined
from agentic_rl.types import Advantages, ScoredGroup


@advantages.register("rloo")
@dataclass(frozen=True)
class Rloo:
    """A_i = r_i - mean of the other r_j = n / (n - 1) * (r_i - mean(r))

    n counts the trajectories that are there: with one dropped, the others have one baseline fewer.
    """

    singleton: str = "zero"

    def __post_init__(self) -> None:
        one_of("singleton", self.singleton, ("raw", "zero"))

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages:
        checked(batch)
        return [spread(group, self._values(group)) for group in batch]

    def _values(self, group: ScoredGroup) -> list[float]:
        returns = group.returns
        size = len(returns)
        if unbaselined(group, size, self.singleton):
            return list(returns)
        return [value * size / max(1, size - 1) for value in centred(returns)]
