"""Losses: what an update minimises, token by token."""

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


def check_reduction(reduction: str, constant_tokens: int) -> None:
    """Refuses an unknown reduction, and a constant that divides nothing."""
    known = get_args(Reduction)
    if reduction not in known:
        near = did_you_mean(reduction, known)
        raise ConfigError(f"reduction={reduction} is not one of {', '.join(known)}.{near}")
    if constant_tokens < 1:
        raise ConfigError(f"constant_tokens={constant_tokens} is below 1")


def token_weights(
    batch: Batch, reduction: str, constant_tokens: int = 1
) -> list[NDArray[np.float64]]:
    """The mask of each Datum over what `reduction` divides the batch's sum by.

    `tokens` and `trajectories` count the whole logical batch, what was left out of `data` included.
    """
    counts = {
        "tokens": batch.tokens,
        "trajectories": batch.trajectories,
        "constant": constant_tokens,
    }
    return [datum.loss_mask / max(counts[reduction], 1) for datum in batch.data]


def ratios(logprobs: NDArray[np.float64], old_logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much likelier each token has become since it was sampled."""
    change = np.clip(logprobs - old_logprobs, -MAX_LOG_RATIO, MAX_LOG_RATIO)
    return np.asarray(np.exp(change), dtype=np.float64)
