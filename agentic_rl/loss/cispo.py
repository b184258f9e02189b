"""CISPO: the ratio is clipped and held fixed, so that every token keeps a gradient."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.errors import ConfigError
from agentic_rl.interfaces import LossValue
from agentic_rl.loss import check_reduction, losses, ratios, token_weights
from agentic_rl.types import Batch


@losses.register("cispo")
@dataclass(frozen=True)
class Cispo:
    """-w A log p, with w = clip(r, low, high) held fixed; r is the ratio of new to old probability.

    The thresholds are bounds of the ratio itself, not distances from 1.
    """

    clip_low_threshold: float = 0.0
    clip_high_threshold: float = 4.0
    reduction: str = "tokens"
    constant_tokens: int = 12000

    def __post_init__(self) -> None:
        check_reduction(self.reduction, self.constant_tokens)
        if not 0 <= self.clip_low_threshold <= 1 <= self.clip_high_threshold:
            raise ConfigError(
                f"clip_low_threshold={self.clip_low_threshold} and clip_high_threshold="
                f"{self.clip_high_threshold} are bounds of the ratio: use low <= 1 <= high,"
                " such as 0 and 4"
            )

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
        weight = np.clip(ratio, self.clip_low_threshold, self.clip_high_threshold)
        grads = -weight * advantages
        return LossValue(grads * logprobs, grads, ratio, weight != ratio)

    def token_weights(self, batch: Batch) -> list[NDArray[np.float64]]:
        return token_weights(batch, self.reduction, self.constant_tokens)

    def remote(self) -> tuple[str, dict[str, float]]:
        return "cispo", {
            "clip_low_threshold": self.clip_low_threshold,
            "clip_high_threshold": self.clip_high_threshold,
        }
