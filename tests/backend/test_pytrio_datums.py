"""Shifting, and a loss's reduction on services that divide differently."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rl.backend.remote.canary import Bounds, Canary
from agentic_rl.backend.remote.datums import Divisor, Gap, batch_gap, measure, remote_batch, shift
from agentic_rl.backend.remote.service import RemoteError
from agentic_rl.errors import IntegrityError
from agentic_rl.interfaces import Loss
from agentic_rl.loss import losses
from agentic_rl.types import Batch, Datum


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Sequences with sampled stretches, and some that were left out of the data."""
    data = []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.integers(2, 12))
        mask = np.array(
            [
                0.0,
                *draw(
                    st.lists(st.sampled_from([0.0, 1.0]), min_size=length - 1, max_size=length - 1)
                ),
            ]
        )
        mask[-1] = 1.0
        numbers = st.lists(st.floats(-3, 3), min_size=length, max_size=length)
        old, advantages = np.array(draw(numbers)) * mask, np.array(draw(numbers)) * mask
        data.append(Datum(np.arange(length), mask, old, advantages, ()))
    sampled = int(sum(datum.loss_mask.sum() for datum in data))
    extra = draw(st.integers(0, 5))
    return Batch(tuple(data), sampled + extra, len(data) + extra)


def total(batch: Batch, loss: Loss, divisor: Divisor) -> float:
    """What such a service computes on the very policy that sampled."""
    sent = remote_batch(batch, loss, divisor)
    counts = {
        Divisor.NONE: 1,
        Divisor.SAMPLED: sum(int(datum.mask.sum()) for datum in sent),
        Divisor.ALL: sum(len(datum.tokens) for datum in sent),
    }
    values = [
        loss.value_and_grad(datum.logprobs, datum.logprobs, datum.advantages).values * datum.mask
        for datum in sent
    ]
    return float(sum(value.sum() for value in values)) / counts[divisor]


@given(batches(), st.sampled_from(["ppo", "importance_sampling"]))
def test_the_reduction_is_the_losss_on_every_service(batch: Batch, name: str) -> None:
    for reduction in ("trajectories", "constant"):
        loss = losses.build({"name": name, "reduction": reduction})
        expected = measure(batch, [datum.old_logprobs[1:] for datum in batch.data], loss).loss
        for divisor in Divisor:
            assert total(batch, loss, divisor) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(batches())
def test_a_mean_over_tokens_goes_out_as_it_is(batch: Batch) -> None:
    """A service that divides by sampled tokens gets the advantages that the estimator gave."""
    loss = losses.build({"name": "ppo"})
    for datum, sent in zip(batch.data, remote_batch(batch, loss, Divisor.SAMPLED), strict=True):
        assert sent.advantages.tolist() == datum.advantages[1:].tolist()
        assert sent.targets.tolist() == datum.tokens[1:].tolist()
        assert sent.tokens == datum.tokens[:-1].tolist()


@given(batches())
def test_on_the_sampling_policy_every_ratio_is_one(batch: Batch) -> None:
    same = [datum.old_logprobs[1:] for datum in batch.data]
    metrics = measure(batch, same, losses.build({"name": "ppo"}))
    assert (metrics.ratio_mean, metrics.ratio_max, metrics.clip_fraction) == (1.0, 1.0, 0.0)
    sent = remote_batch(batch, losses.build({"name": "ppo"}), Divisor.SAMPLED)
    assert batch_gap(sent, same) == Gap(0.0, 0.0, int(sum(d.loss_mask.sum() for d in batch.data)))


def test_a_sampled_first_token_is_refused() -> None:
    ones = np.ones(3)
    with pytest.raises(IntegrityError, match="first token"):
        shift(Datum(np.arange(3), ones, -ones, ones, ()), ones)


class Plain:
    """A tokenizer of characters."""

    def render(self, messages: object, tools: object, prompt: bool, options: object) -> str:
        return "abc"

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]

    def decode(self, tokens: object) -> str:
        return ""


def canary(**bounds: float) -> Canary:
    defaults = {"mean_gap": 0.1, "largest_gap": 0.5, "tokens": 2, "unchanged": 2}
    return Canary(Bounds(**{**defaults, **bounds}), Plain(), "PyTRIO")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scored", "key"),
    [
        ([-1.0, -1.0, -1.0, -2.0], None),
        ([-1.0, -1.0, -1.15, -2.15], "canary_mean_gap=0.1"),
        ([-1.0, -1.0, float("nan"), -2.0], "canary_mean_gap=0.1"),
    ],
)
def test_the_canary_compares_what_was_sampled(scored: list[float], key: str | None) -> None:
    bird = canary()
    if key is None:
        assert bird.compare([-1.0, -2.0], np.array(scored), updated=False).mean == 0.0
        return
    with pytest.raises(RemoteError) as caught:
        bird.compare([-1.0, -2.0], np.array(scored), updated=False)
    assert f"backend.{key}" in str(caught.value)


def test_one_token_far_off_is_a_bound_of_its_own() -> None:
    told = [-1.0] * 20
    scored = np.array([-5.0, -5.0, *told[:-1], -1.8])
    with pytest.raises(RemoteError, match=r"backend\.canary_largest_gap=0\.5"):
        canary().compare(told, scored, updated=False)
    canary(largest_gap=0.0).compare(told, scored, updated=False)


def test_only_updates_in_a_row_without_a_trace_stop_a_run() -> None:
    bird = canary()
    still, moved = np.array([-1.0, -1.0, -1.0, -2.0]), np.array([-1.1, -1.0, -1.0, -2.0])
    for scored, updated in ((still, False), (still, False), (still, True), (moved, True)):
        bird.compare([-1.0, -2.0], scored, updated=updated)
    bird.compare([-1.0, -2.0], moved, updated=True)
    with pytest.raises(RemoteError, match="2 updates in a row changed nothing"):
        bird.compare([-1.0, -2.0], moved, updated=True)
