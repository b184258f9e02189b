"""What a success rate is worth: intervals, paired tests, pass@k. Exact where it can be."""

import math
from collections.abc import Sequence
from fractions import Fraction

Z95 = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


def wilson(won: int, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of won / n; (0, 1) where nothing was played."""
    if not 0 <= won <= n:
        raise ValueError(f"{won} won of {n}")
    if n == 0:
        return 0.0, 1.0
    rate, square = won / n, z * z
    middle = rate + square / (2 * n)
    reach = z * math.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    scale = 1 + square / n
    # At the ends the formula is exactly 0 or 1, its rounding is not.
    low = 0.0 if won == 0 else (middle - reach) / scale
    high = 1.0 if won == n else (middle + reach) / scale
    return low, high


def mcnemar(better: int, worse: int) -> float:
    """Two-sided exact p-value: of the games that differ, is either run's share above a half?"""
    if better < 0 or worse < 0:
        raise ValueError(f"{better} better, {worse} worse")
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 2**n)))


def paired_bootstrap(
    differences: Sequence[float], *, samples: int = 10_000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """The percentile interval of the mean difference, the games drawn anew each time.

    The same numbers on every machine: the generator's stream is frozen.
    """
    import numpy as np

    values = np.asarray(differences, dtype=np.float64)
    n = len(values)
    if n == 0:
        raise ValueError("no differences to draw from")
    generator = np.random.RandomState(seed)
    chunk = max(1, 1_000_000 // n)
    means = [
        values[generator.randint(0, n, size=(min(chunk, samples - start), n))].mean(axis=1)
        for start in range(0, samples, chunk)
    ]
    ends = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(ends[0]), float(ends[1])


def pass_at_k(n: int, won: int, k: int) -> float:
    """Unbiased chance that k of the n episodes hold a win: 1 - C(n - won, k) / C(n, k)."""
    if not (0 <= won <= n and 1 <= k <= n):
        raise ValueError(f"pass@{k} of {won} won in {n}")
    return float(1 - Fraction(math.comb(n - won, k), math.comb(n, k)))


def mean_pass_at_k(counts: Sequence[tuple[int, int]], k: int) -> float | None:
    """pass@k over games, each (episodes, won); None where a game has fewer than k episodes."""
    if not counts or any(n < k for n, _ in counts):
        return None
    return math.fsum(pass_at_k(n, won, k) for n, won in counts) / len(counts)


def avg_at_k(counts: Sequence[tuple[int, int]]) -> float | None:
    """Mean success over games, each (episodes, won), every game weighing the same."""
    played = [(n, won) for n, won in counts if n > 0]
    if not played:
        return None
    return math.fsum(won / n for n, won in played) / len(played)
