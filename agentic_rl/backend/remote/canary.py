"""Watches that sampler and trainer are the same policy, and that updates change it.

A run whose sampler serves other weights than it trains burns money and learns nothing. The canary
costs a few tokens: at each refresh the sampler continues a fixed prompt, and the trainer scores it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend.remote.datums import Gap
from agentic_rl.backend.remote.service import RemoteDatum, RemoteError
from agentic_rl.interfaces import Tokenizer
from agentic_rl.types import Message, SamplingParams

_TEXT = "You are in the middle of a room. Looking quickly around you, what do you see?"
_SEED = 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """Beyond these a run stops; 0 turns a watch off."""

    mean_gap: float
    largest_gap: float
    tokens: int
    unchanged: int


class Canary:
    """Remembers how the trainer scored the probe, to tell an update from none."""

    def __init__(self, bounds: Bounds, tokenizer: Tokenizer, service: str) -> None:
        self._bounds = bounds
        self._service = service
        message = Message("user", _TEXT)
        self.prompt = tokenizer.encode(tokenizer.render([message], (), True, {}))
        self.params = SamplingParams(1.0, 1.0, bounds.tokens, _SEED)
        self._last: NDArray[np.float64] | None = None
        self._unchanged = 0

    @property
    def watches(self) -> bool:
        return self._bounds.tokens > 0

    def probe(self, continuation: Sequence[int]) -> RemoteDatum:
        """The prompt and what the sampler added, every position to be scored."""
        tokens = [*self.prompt, *continuation]
        zeros = np.zeros(len(tokens) - 1)
        return RemoteDatum(
            tokens[:-1], np.asarray(tokens[1:], np.int64), np.ones_like(zeros), zeros, zeros
        )

    def compare(self, sampled: Sequence[float], scored: NDArray[np.float64], updated: bool) -> Gap:
        """Raises where the sampler is not the trainer, or where updates leave no trace."""
        cut = len(scored) - len(sampled)
        gap = Gap.between(scored[cut:], sampled)
        self.check(gap, "at the start of an update")
        prompt = scored[:cut]
        if updated and self._last is not None:
            same = bool(np.array_equal(prompt, self._last))
            self._unchanged = self._unchanged + 1 if same else 0
        self._last = prompt
        if self._bounds.unchanged and self._unchanged >= self._bounds.unchanged:
            raise RemoteError(
                f"{self._unchanged} updates in a row changed nothing in how {self._service}'s"
                " trainer scores a fixed text: is lr too small, or the adapter not trained?"
                " (backend.canary_unchanged=0 goes on regardless)"
            )
        return gap

    def check(self, gap: Gap, where: str) -> None:
        """Raises where trainer and sampler disagree by more than the bounds allow."""
        for key, value, most in (
            ("canary_mean_gap", gap.mean, self._bounds.mean_gap),
            ("canary_largest_gap", gap.largest, self._bounds.largest_gap),
        ):
            if most and not value <= most:
                raise RemoteError(
                    f"{self._service}'s trainer and sampler disagree {where}: the log-probabilities"
                    f" of {gap.tokens} tokens lie {gap.mean:.3g} apart in the mean and"
                    f" {gap.largest:.3g} at most, beyond backend.{key}={most:g}; stopped before"
                    " anything more is spent (a temperature other than 1 has this effect too)"
                )
