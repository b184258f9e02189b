"""A batch as a service takes it: shifted once, the loss's reduction folded into the advantages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend.remote.service import RemoteDatum
from agentic_rl.errors import IntegrityError
from agentic_rl.interfaces import Loss
from agentic_rl.training import UpdateMetrics
from agentic_rl.types import Batch, Datum

Floats = NDArray[np.float64]


class Divisor(StrEnum):
    """What a service divides the sum of the token losses by."""

    NONE = "none"
    SAMPLED = "sampled"
    ALL = "all"


def shift(datum: Datum, advantages: Floats) -> RemoteDatum:
    """Position i answers for token i + 1; the first token has nothing before it."""
    if datum.loss_mask[0]:
        raise IntegrityError("the first token of a sequence cannot have been sampled")
    return RemoteDatum(
        tokens=[int(token) for token in datum.tokens[:-1]],
        targets=np.asarray(datum.tokens[1:], np.int64),
        mask=np.asarray(datum.loss_mask[1:], np.float64),
        logprobs=np.asarray(datum.old_logprobs[1:], np.float64),
        advantages=np.asarray(advantages[1:], np.float64),
    )


def remote_batch(batch: Batch, loss: Loss, divisor: Divisor) -> list[RemoteDatum]:
    """The batch, its advantages weighted so that the service's reduction becomes the loss's.

    Every token loss is linear in a positive factor of the advantage. A service that divides by the
    count of sampled tokens already takes a mean over tokens, and gets the advantages as they are.
    """
    if divisor is Divisor.SAMPLED and loss.reduction == "tokens":
        return [shift(datum, datum.advantages) for datum in batch.data]
    counts = {
        Divisor.NONE: 1,
        Divisor.SAMPLED: sum(int(np.count_nonzero(datum.loss_mask)) for datum in batch.data),
        Divisor.ALL: sum(len(datum.tokens) - 1 for datum in batch.data),
    }
    weights = loss.token_weights(batch)
    return [
        shift(datum, datum.advantages * weight * counts[divisor])
        for datum, weight in zip(batch.data, weights, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Gap:
    """How far two sets of log-probabilities of the same tokens lie apart."""

    mean: float
    largest: float
    tokens: int

    @classmethod
    def between(cls, ours: Sequence[float] | Floats, theirs: Sequence[float] | Floats) -> "Gap":
        gaps = np.abs(np.asarray(ours, np.float64) - np.asarray(theirs, np.float64))
        if not len(gaps):
            return cls(0.0, 0.0, 0)
        return cls(math.fsum(gaps.tolist()) / len(gaps), float(gaps.max()), len(gaps))


def batch_gap(data: Sequence[RemoteDatum], logprobs: Sequence[Floats]) -> Gap:
    """Trainer against sampler, over the sampled tokens."""
    new = np.concatenate([values[d.mask > 0] for d, values in zip(data, logprobs, strict=True)])
    old = np.concatenate([datum.logprobs[datum.mask > 0] for datum in data])
    return Gap.between(new, old)


def measure(batch: Batch, logprobs: Sequence[Floats], loss: Loss) -> UpdateMetrics:
    """Loss, ratios and clipping by our own formula, from the trainer's log-probabilities."""
    losses: list[float] = []
    ratios: list[float] = []
    clipped = 0
    for datum, weight, new in zip(batch.data, loss.token_weights(batch), logprobs, strict=True):
        where = np.flatnonzero(datum.loss_mask)
        value = loss.value_and_grad(
            new[where - 1], datum.old_logprobs[where], datum.advantages[where]
        )
        losses += (value.values * weight[where]).tolist()
        ratios += value.ratios.tolist()
        clipped += int(np.count_nonzero(value.clipped))
    count = len(ratios) or 1
    return UpdateMetrics(
        loss=math.fsum(losses),
        ratio_mean=math.fsum(ratios) / count,
        ratio_max=max(ratios, default=None),
        clip_fraction=clipped / count,
    )
