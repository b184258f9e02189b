"""The gradient of a token-level loss through the token trie, for a whole batch at once.

With the masses S_k of `choice`, S_k changes with the score of candidate j by p_j / T where j shares
k tokens, so the log-probability of token k, log S_{k+1} - log S_k, has the derivative

    p_j / T * (1[overlap_j > k] / S_{k+1} - 1[overlap_j >= k] / S_k)

by that score. Sums over the tokens become two running sums, read at each candidate's overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend.linear.choice import COLDEST, Choice
from agentic_rl.backend.linear.features import WIDTH

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrieBatch:
    """A batch of choices under the present weights.

    Candidates of all choices lie end to end: `owner[c]` is candidate c's choice. `shared[n, k]` is
    the mass S_k of choice n (1 beyond its end) and `kept[n, k]` says that token k was sampled.
    """

    columns: NDArray[np.int32]
    owner: NDArray[np.int64]
    overlaps: NDArray[np.int64]
    temperatures: Floats
    mass: Floats
    shared: Floats
    kept: NDArray[np.bool_]

    @classmethod
    def of(cls, choices: Sequence[Choice], theta: Floats) -> "TrieBatch":
        counts = np.array([choice.columns.shape[1] for choice in choices])
        starts = np.cumsum(counts) - counts
        owner = np.repeat(np.arange(len(choices)), counts)
        overlaps = np.concatenate([choice.overlaps for choice in choices]).astype(np.int64)
        columns = np.concatenate([choice.columns for choice in choices], axis=1)
        temperatures = np.array([max(choice.temperature, COLDEST) for choice in choices])
        scores = theta[columns].sum(axis=0)
        best = np.maximum.reduceat(scores, starts)
        scaled = (scores - best[owner]) / temperatures[owner]
        mass = np.asarray(np.exp(np.maximum(scaled, -600.0)), dtype=np.float64)
        lengths = np.array([choice.length for choice in choices])
        width = int(lengths.max()) + 1
        place = owner * width + overlaps
        spread = np.bincount(place, weights=mass, minlength=len(choices) * width).astype(np.float64)
        shared = np.cumsum(spread.reshape(-1, width)[:, ::-1], axis=1)[:, ::-1]
        position = np.arange(width)
        shared = np.where(position <= lengths[:, None], shared, 1.0)
        sampled = np.array([len(choice.tokens) for choice in choices])
        kept = position[:-1] < sampled[:, None]
        return cls(columns, owner, overlaps, temperatures, mass, shared, kept)

    def logprobs(self) -> Floats:
        """Of the kept tokens, choice after choice."""
        logs = np.log(self.shared)
        return np.asarray((logs[:, 1:] - logs[:, :-1])[self.kept], dtype=np.float64)

    def gradient(self, by_token: Floats, size: int) -> Floats:
        """By the weights, from the loss's derivatives by the kept tokens' log-probabilities."""
        weights = np.zeros(self.kept.shape)
        weights[self.kept] = by_token
        nothing = np.zeros((len(weights), 1))
        grown = np.cumsum(np.hstack([nothing, weights / self.shared[:, 1:]]), axis=1)
        whole = np.cumsum(np.hstack([weights / self.shared[:, :-1], nothing]), axis=1)
        by_overlap = (grown - whole)[self.owner, self.overlaps]
        by_score = self.mass * by_overlap / self.temperatures[self.owner]
        return spread(self.columns, by_score, size)

    def entropy(self) -> float:
        """Of the choice among replies, in nats, on average."""
        total = self.shared[:, 0]
        share = self.mass / total[self.owner]
        terms = np.bincount(self.owner, weights=share * np.log(share), minlength=len(total))
        return float(-terms.mean())


def spread(columns: NDArray[np.int32], by_score: Floats, size: int) -> Floats:
    """Each candidate's share goes to all its features, in a fixed order."""
    found = np.bincount(columns.ravel(), weights=np.tile(by_score, WIDTH), minlength=size)
    return found.astype(np.float64, copy=False)
