"""The clipped surrogate: values, derivatives and what its sum is divided by."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from agentic_rl.errors import ConfigError
from agentic_rl.interfaces import Loss
from agentic_rl.loss import losses
from agentic_rl.loss.ppo import Ppo
from agentic_rl.types import Batch, Datum, Span

CONF = Path(__file__).parents[2] / "conf" / "loss" / "ppo.yaml"


def one(logprob: float, old: float, advantage: float):
    return Ppo().value_and_grad(np.array([logprob]), np.array([old]), np.array([advantage]))


def datum(mask: list[float]) -> Datum:
    size = len(mask)
    zeros = np.zeros(size)
    span = Span(0, size, "", 0, 0, 0)
    return Datum(np.arange(size), np.array(mask), zeros, zeros, (span,))


def test_yaml_builds_the_default() -> None:
    spec = OmegaConf.to_container(OmegaConf.load(CONF))
    assert losses.build(spec) == Ppo()
    assert isinstance(Ppo(), Loss)


def test_worked_values() -> None:
    inside = one(np.log(0.55), np.log(0.5), 2.0)
    assert inside.values[0] == pytest.approx(-2.2)
    assert inside.grads[0] == pytest.approx(-2.2)
    above = one(np.log(0.75), np.log(0.5), 2.0)
    assert (above.values[0], above.grads[0], above.clipped[0]) == (pytest.approx(-2.4), 0.0, True)
    below = one(np.log(0.25), np.log(0.5), -2.0)
    assert (below.values[0], below.grads[0], below.clipped[0]) == (pytest.approx(1.6), 0.0, True)


def test_a_bound_never_holds_back_the_way_home() -> None:
    assert one(np.log(0.75), np.log(0.5), -1.0).grads[0] == pytest.approx(1.5)
    assert one(np.log(0.25), np.log(0.5), 1.0).grads[0] == pytest.approx(-0.5)


numbers = st.floats(-3, 0)


@given(numbers, numbers, st.floats(-3, 3))
def test_gradient_equals_the_difference_quotient(
    logprob: float, old: float, advantage: float
) -> None:
    step = 1e-6
    ratio = np.exp(logprob - old)
    if min(abs(ratio - 0.8), abs(ratio - 1.2)) < 1e-3:
        return
    ends = [one(logprob + d, old, advantage).values[0] for d in (-step, step)]
    slope = (ends[1] - ends[0]) / (2 * step)
    assert one(logprob, old, advantage).grads[0] == pytest.approx(slope, abs=1e-4)


@given(numbers, numbers, st.floats(-3, 3))
def test_never_better_than_the_plain_surrogate(
    logprob: float, old: float, advantage: float
) -> None:
    result = one(logprob, old, advantage)
    assert result.values[0] >= -result.ratios[0] * advantage - 1e-12


def test_equal_policies_have_ratio_one_and_a_wild_one_stays_finite() -> None:
    assert one(-1.234, -1.234, 1.0).ratios[0] == 1.0
    wild = one(0.0, -5000.0, -1.0)
    assert np.isfinite([wild.values[0], wild.grads[0]]).all()


@pytest.mark.parametrize(
    ("reduction", "divisor"), [("tokens", 10), ("trajectories", 4), ("constant", 50)]
)
def test_weights_divide_by_the_whole_batch(reduction: str, divisor: int) -> None:
    batch = Batch((datum([0, 1, 1]), datum([1, 0])), tokens=10, trajectories=4)
    weights = Ppo(reduction=reduction, constant_tokens=50).token_weights(batch)
    assert [list(w * divisor) for w in weights] == [[0, 1, 1], [1, 0]]


def test_slips_are_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'tokens'"):
        Ppo(reduction="token")
    with pytest.raises(ConfigError, match=r"0\.8 and 1\.2"):
        Ppo(clip_low_threshold=0.2, clip_high_threshold=0.2)
    with pytest.raises(ConfigError, match="below 1"):
        Ppo(constant_tokens=0)


def test_remote_name_and_settings() -> None:
    expected = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}
    assert Ppo().remote() == ("ppo", expected)
