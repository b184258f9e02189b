"""CISPO: the ratio is clipped and held fixed, so that every token keeps a gradient."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.interfaces import LossValue
from agentic_rl.loss import Bounded, losses, ratios


@losses.register("cispo")
@dataclass(frozen=True)
class Cispo(Bounded):
    """-w A log p, w = clip(r, low, high) held fixed; r is the ratio of new to old probability."""

    clip_low_threshold: float = 0.0
    clip_high_threshold: float = 4.0

    @property
    def name(self) -> str:
        return "cispo"

    def value_and_grad(
        self,
        logprobs: NDArray[np.float64],
        old_logprobs: NDArray[np.float64],
        advantages: NDArray[np.float64],
    ) -> LossValue:
        ratio = ratios(logprobs, old_logprobs)
        weight = self.bound(ratio)
        grads = -weight * advantages
        return LossValue(grads * logprobs, grads, ratio, weight != ratio)

    def remote(self) -> tuple[str, dict[str, float]]:
        return "cispo", self.thresholds()
