"""Losses: what an update minimises, token by token."""

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from agentic_rl.errors import ConfigError, did_you_mean
from agentic_rl.interfaces import Loss, Reduction
from agentic_rl.registry import Registry
from agentic_rl.types import Batch

losses: Registry[Loss] = Registry("loss", __name__)

MAX_LOG_RATIO = 20.0
"""Keeps a ratio finite, whatever the two policies think of a token."""


@dataclass(frozen=True)
class Reduced:
    """What every loss shares: its sum over the batch is divided by what `reduction` names."""

    reduction: str = "tokens"
    constant_tokens: int = 12000

    def __post_init__(self) -> None:
        known = get_args(Reduction)
        if self.reduction not in known:
            near = did_you_mean(self.reduction, known)
            raise ConfigError(f"reduction={self.reduction} is not one of {', '.join(known)}.{near}")
        if self.constant_tokens < 1:
            raise ConfigError(f"constant_tokens={self.constant_tokens} is below 1")

    def token_weights(self, batch: Batch) -> list[NDArray[np.float64]]:
        """The mask of each Datum over the divisor.

        `tokens` and `trajectories` count the whole logical batch, what was left out included.
        """
        counts = {
            "tokens": batch.tokens,
            "trajectories": batch.trajectories,
            "constant": self.constant_tokens,
        }
        return [datum.loss_mask / max(counts[self.reduction], 1) for datum in batch.data]


@dataclass(frozen=True)
class Bounded(Reduced):
    """A loss with two bounds of the ratio itself, not distances from 1."""

    clip_low_threshold: float = 0.8
    clip_high_threshold: float = 1.2

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.clip_low_threshold, self.clip_high_threshold
        if not 0 <= low <= 1 <= high:
            usual = f"{type(self).clip_low_threshold:g} and {type(self).clip_high_threshold:g}"
            raise ConfigError(
                f"clip_low_threshold={low} and clip_high_threshold={high} are bounds of the ratio:"
                f" use low <= 1 <= high, such as {usual}"
            )

    def bound(self, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(ratio, self.clip_low_threshold, self.clip_high_threshold)

    def thresholds(self) -> dict[str, float]:
        """As training services call them."""
        return {
            "clip_low_threshold": self.clip_low_threshold,
            "clip_high_threshold": self.clip_high_threshold,
        }


def ratios(logprobs: NDArray[np.float64], old_logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much likelier each token has become since it was sampled."""
    change = np.clip(logprobs - old_logprobs, -MAX_LOG_RATIO, MAX_LOG_RATIO)
    return np.asarray(np.exp(change), dtype=np.float64)
