"""One choice among replies, and the log-probabilities of its tokens over the replies' trie.

The policy chooses a reply with probability p_j proportional to exp(score_j / T). After the first
k tokens of the chosen reply, the replies that share them hold the mass S_k, so its next token has
the probability S_{k+1} / S_k. S_0 is the mass of all replies and S_L, L being the reply's length,
that of the chosen one alone: the tokens' log-probabilities sum to the reply's.
"""

import hashlib
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentic_rl.errors import BackendError

COLDEST = 1e-4
"""Below this temperature ties alone are left to chance."""

MEMORY = 100_000


class Choice(NamedTuple):
    """What an update needs of a sampled turn.

    `columns[:, j]` are candidate j's features and `overlaps[j]` tells how many leading tokens it
    shares with the chosen reply, whose tokens number `length`; only `tokens` of them were kept.
    """

    columns: NDArray[np.int32]
    overlaps: NDArray[np.int32]
    tokens: tuple[int, ...]
    length: int
    temperature: float


class Memory:
    """Choices by sample id, until an update has used them; the oldest go first."""

    def __init__(self, limit: int = MEMORY) -> None:
        self._limit = limit
        self._choices: OrderedDict[str, Choice] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return len(self._choices)

    def add(self, choice: Choice) -> str:
        self._count += 1
        sample_id = str(self._count)
        self._choices[sample_id] = choice
        if len(self._choices) > self._limit:
            self._choices.popitem(last=False)
        return sample_id

    def get(self, sample_id: str) -> Choice:
        if sample_id not in self._choices:
            raise BackendError(
                f"the linear policy no longer knows sample '{sample_id}': it keeps the last"
                f" {self._limit} turns, until they are trained on"
            )
        return self._choices[sample_id]

    def drop(self, sample_ids: list[str]) -> None:
        for sample_id in sample_ids:
            self._choices.pop(sample_id, None)


def masses(scores: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Unnormalised probabilities; the most likely has 1, none is quite 0."""
    scaled = (scores - scores.max()) / max(temperature, COLDEST)
    return np.asarray(np.exp(np.maximum(scaled, -600.0)), dtype=np.float64)


def draw(mass: NDArray[np.float64], seed: int, index: int) -> int:
    """Inverse of the distribution function at a hash of (seed, index)."""
    digest = hashlib.sha256(f"{seed}\x1f{index}".encode()).digest()
    uniform = (int.from_bytes(digest[:8], "big") >> 11) / (1 << 53)
    below = np.cumsum(mass)
    return min(int(np.searchsorted(below, uniform * below[-1], side="right")), len(mass) - 1)


def token_logprobs(
    mass: NDArray[np.float64], overlaps: NDArray[np.int32], length: int
) -> NDArray[np.float64]:
    """One log-probability a token of the chosen reply."""
    by_overlap = np.bincount(overlaps, weights=mass, minlength=length + 1)
    shared = np.log(np.cumsum(by_overlap[::-1])[::-1])
    return np.asarray(shared[1:] - shared[:-1], dtype=np.float64)
