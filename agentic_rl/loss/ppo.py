"""The clipped surrogate of PPO, per token."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.interfaces import LossValue
from agentic_rl.loss import Bounded, losses, ratios


@losses.register("ppo")
@dataclass(frozen=True)
class Ppo(Bounded):
    """-min(r A, clip(r, low, high) A), where r is the ratio of new to old probability."""

    @property
    def name(self) -> str:
        return "ppo"

    def value_and_grad(
        self,
        logprobs: NDArray[np.float64],
        old_logprobs: NDArray[np.float64],
        advantages: NDArray[np.float64],
    ) -> LossValue:
        ratio = ratios(logprobs, old_logprobs)
        bounded = self.bound(ratio)
        clipped = bounded * advantages < ratio * advantages
        values = -np.minimum(ratio * advantages, bounded * advantages)
        grads = np.where(clipped, 0.0, -ratio * advantages)
        return LossValue(values, grads, ratio, clipped)

    def remote(self) -> tuple[str, dict[str, float]]:
        return "ppo", self.thresholds()
