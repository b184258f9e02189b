"""The unclipped policy gradient."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rl.errors import ConfigError
from agentic_rl.loss.importance_sampling import ImportanceSampling

numbers = st.floats(-3, 0)


def one(logprob: float, old: float, advantage: float):
    arrays = (np.array([value]) for value in (logprob, old, advantage))
    return ImportanceSampling().value_and_grad(*arrays)


def test_worked_values() -> None:
    result = one(np.log(0.75), np.log(0.5), 2.0)
    assert (result.values[0], result.grads[0]) == (pytest.approx(-3.0), pytest.approx(-3.0))
    assert (result.ratios[0], result.clipped[0]) == (pytest.approx(1.5), False)


@given(numbers, st.floats(-3, 3))
def test_on_the_policy_that_sampled_it_is_the_policy_gradient(
    logprob: float, advantage: float
) -> None:
    assert one(logprob, logprob, advantage).grads[0] == -advantage


@given(numbers, numbers, st.floats(-3, 3))
def test_gradient_equals_the_difference_quotient(
    logprob: float, old: float, advantage: float
) -> None:
    above, below = one(logprob + 1e-6, old, advantage), one(logprob - 1e-6, old, advantage)
    quotient = (above.values[0] - below.values[0]) / 2e-6
    assert one(logprob, old, advantage).grads[0] == pytest.approx(quotient, rel=1e-4, abs=1e-4)


def test_what_a_service_is_told() -> None:
    assert ImportanceSampling().remote() == ("importance_sampling", {})


def test_an_unknown_reduction_names_the_near_one() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'tokens'"):
        ImportanceSampling(reduction="token")
