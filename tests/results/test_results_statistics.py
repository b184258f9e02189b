"""The statistics against definitions, brute force and known values."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rl.results.statistics import (
    avg_at_k,
    mcnemar,
    mean_pass_at_k,
    paired_bootstrap,
    pass_at_k,
    wilson,
)


@pytest.mark.parametrize(
    ("won", "n", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilson_known_values(won: int, n: int, low: float, high: float) -> None:
    assert wilson(won, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_solves_its_equation_and_mirrors(counts: tuple[int, int]) -> None:
    won, n = counts
    low, high = wilson(won, n)
    assert 0 <= low <= won / n <= high <= 1
    assert wilson(n - won, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)
    for end in (low, high):
        reach = 1.959963984540054 * math.sqrt(end * (1 - end) / n)
        assert abs(won / n - end) == pytest.approx(reach, abs=1e-9)


@given(st.integers(0, 9), st.integers(0, 9))
def test_mcnemar_is_the_two_sided_binomial_test(better: int, worse: int) -> None:
    n = better + worse
    extreme = [
        sum(flips)
        for flips in itertools.product((0, 1), repeat=min(n, 12))
        if n <= 12 and abs(2 * sum(flips) - n) >= abs(better - worse)
    ]
    if n <= 12:
        assert mcnemar(better, worse) == pytest.approx(len(extreme) / 2**n)
    assert mcnemar(better, worse) == mcnemar(worse, better) <= 1


def test_mcnemar_of_many_games_does_not_overflow() -> None:
    assert mcnemar(1000, 0) == 2.0**-999
    assert mcnemar(3000, 0) == 0.0
    assert mcnemar(1500, 1500) == 1.0


def test_the_bootstrap_is_the_same_every_time() -> None:
    values = [1.0] * 12 + [0.0] * 20 + [-1.0] * 4
    low, high = paired_bootstrap(values)
    assert (low, high) == paired_bootstrap(values)
    assert low < 8 / 36 < high
    # Close to the normal interval.
    spread = math.sqrt(sum((value - 8 / 36) ** 2 for value in values)) / 36
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_the_bootstrap_of_no_difference_is_a_point() -> None:
    assert paired_bootstrap([0.25] * 7, samples=100) == (0.25, 0.25)
    with pytest.raises(ValueError, match="no differences"):
        paired_bootstrap([])


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(*[st.integers(0, n), st.integers(1, n)], st.just(n))
    )
)
def test_pass_at_k_is_the_share_of_samples_with_a_win(drawn: tuple[int, int, int]) -> None:
    won, k, n = drawn
    episodes = [True] * won + [False] * (n - won)
    samples = list(itertools.combinations(episodes, k))
    assert pass_at_k(n, won, k) == pytest.approx(sum(map(any, samples)) / len(samples))


def test_over_games() -> None:
    assert avg_at_k([(4, 1), (2, 2), (0, 0)]) == 0.625
    assert mean_pass_at_k([(4, 1), (4, 4)], 2) == 0.75
    assert mean_pass_at_k([(4, 1), (1, 1)], 2) is None
    assert avg_at_k([]) is None
