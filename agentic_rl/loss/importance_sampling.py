"""The policy gradient, weighted by the ratio and never clipped."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.interfaces import LossValue
from agentic_rl.loss import Reduced, losses, ratios


@losses.register("importance_sampling")
@dataclass(frozen=True)
class ImportanceSampling(Reduced):
    """-r A, where r is the ratio of new to old probability.

    On the very policy that sampled, its gradient is that of -A log p.
    """

    @property
    def name(self) -> str:
        return "importance_sampling"

    def value_and_grad(
        self,
        logprobs: NDArray[np.float64],
        old_logprobs: NDArray[np.float64],
        advantages: NDArray[np.float64],
    ) -> LossValue:
        ratio = ratios(logprobs, old_logprobs)
        values = -ratio * advantages
        return LossValue(values, values.copy(), ratio, np.zeros(ratio.shape, dtype=np.bool_))

    def remote(self) -> tuple[str, dict[str, float]]:
        return "importance_sampling", {}
