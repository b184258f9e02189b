"""CISPO: clipped weights, never clipped tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rl.errors import ConfigError
from agentic_rl.loss.cispo import Cispo
from agentic_rl.loss.importance_sampling import ImportanceSampling
from agentic_rl.types import Batch, Datum, Span

numbers = st.floats(-3, 0)


def one(loss: Cispo | ImportanceSampling, logprob: float, old: float, advantage: float):
    arrays = (np.array([value]) for value in (logprob, old, advantage))
    return loss.value_and_grad(*arrays)


def test_worked_values() -> None:
    loss = Cispo(clip_high_threshold=1.2)
    result = one(loss, np.log(0.75), np.log(0.5), 2.0)
    assert result.values[0] == pytest.approx(-1.2 * 2.0 * np.log(0.75))
    assert result.grads[0] == pytest.approx(-2.4)
    assert (result.ratios[0], result.clipped[0]) == (pytest.approx(1.5), True)


@given(numbers, numbers, st.floats(-3, 3).filter(lambda value: abs(value) > 1e-3))
def test_every_token_keeps_a_gradient(logprob: float, old: float, advantage: float) -> None:
    result = one(Cispo(clip_low_threshold=0.8, clip_high_threshold=1.2), logprob, old, advantage)
    assert 0.8 * abs(advantage) <= abs(result.grads[0]) <= 1.2 * abs(advantage) + 1e-12


@given(numbers, numbers, st.floats(-3, 3))
def test_inside_the_bounds_its_gradient_is_that_of_importance_sampling(
    logprob: float, old: float, advantage: float
) -> None:
    wide = Cispo(clip_high_threshold=1e9)
    assert one(wide, logprob, old, advantage).grads[0] == pytest.approx(
        one(ImportanceSampling(), logprob, old, advantage).grads[0]
    )


@pytest.mark.parametrize(
    ("reduction", "divisor"), [("tokens", 10), ("trajectories", 4), ("constant", 100)]
)
def test_reduction_divides_by_the_whole_batch(reduction: str, divisor: int) -> None:
    mask = np.array([0.0, 1.0, 1.0])
    zeros = np.zeros(3)
    datum = Datum(np.arange(3), mask, zeros, zeros, (Span(1, 3, "", 0, 0, 0),))
    loss = Cispo(reduction=reduction, constant_tokens=100)
    [weights] = loss.token_weights(Batch((datum,), tokens=10, trajectories=4))
    assert weights.tolist() == pytest.approx((mask / divisor).tolist())


def test_what_a_service_is_told() -> None:
    name, settings = Cispo().remote()
    assert (name, settings) == ("cispo", {"clip_low_threshold": 0.0, "clip_high_threshold": 4.0})


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.28), (-0.1, 4.0), (1.1, 4.0)])
def test_distances_from_one_are_refused(low: float, high: float) -> None:
    with pytest.raises(ConfigError, match="bounds of the ratio"):
        Cispo(clip_low_threshold=low, clip_high_threshold=high)
