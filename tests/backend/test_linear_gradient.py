"""The gradient through the token trie, against difference quotients; the optimizer."""

import asyncio

import numpy as np
import pytest
from linear_play import VIEW, backend, batch_of, datum_of, episode, sample

from agentic_rl.backend.linear import LinearBackend
from agentic_rl.backend.linear.gradient import TrieBatch
from agentic_rl.backend.linear.optimizer import Weights
from agentic_rl.loss import losses
from agentic_rl.loss.ppo import Ppo
from agentic_rl.training import Adam
from agentic_rl.types import Datum

BITS = 10


def policy_with(seed: int) -> LinearBackend:
    policy = backend(feature_bits=BITS)
    noise = np.random.default_rng(seed).normal(size=1 << BITS)
    policy._learner.weights.theta = noise / 4
    return policy


def mixed_data(policy: LinearBackend) -> list[Datum]:
    """Different temperatures, cut replies, several views, advantages of both signs."""
    first = [*sample(policy, n=4, seed=1, temperature=0.7), *sample(policy, n=3, seed=2)]
    cut = sample(policy, n=4, seed=3, max_tokens=8)
    turns, _ = episode(policy, "toy-move-4-1", 4)
    return [
        datum_of(first, np.linspace(-1, 2, 7)),
        datum_of(cut, [1.0, -0.5, 0.3, 2.0]),
        datum_of(turns, [-0.2] * len(turns)),
    ]


def loss_and_gradient(
    policy: LinearBackend, data: list[Datum], loss_name: str
) -> tuple[float, np.ndarray]:
    learner, loss, batch = policy._learner, losses.get(loss_name)(), batch_of(data)
    spans = [(d, span) for d in data for span in d.spans]
    choices = [learner.memory.get(span.sample_id) for _, span in spans]
    trie = TrieBatch.of(choices, learner.weights.theta)
    old = np.concatenate([d.old_logprobs[s.start : s.end] for d, s in spans])
    credit = np.concatenate([d.advantages[s.start : s.end] for d, s in spans])
    value = loss.value_and_grad(trie.logprobs(), old, credit)
    gradient = trie.gradient(value.grads / batch.tokens, learner.table.size)
    return float(np.sum(value.values)) / batch.tokens, gradient


@pytest.mark.parametrize("loss", ["ppo", "importance_sampling"])
def test_gradient_equals_difference_quotients(loss: str) -> None:
    policy = policy_with(0)
    data = mixed_data(policy)
    learner = policy._learner
    # Away from the sampling weights, so that ratios differ from 1; inside the bounds mostly.
    start = learner.weights.theta + np.random.default_rng(1).normal(size=1 << BITS) * 0.01
    learner.weights.theta = start
    _, gradient = loss_and_gradient(policy, data, loss)
    touched = np.argsort(-np.abs(gradient))[:40]
    for place in touched:
        ends = []
        for step in (1e-5, -1e-5):
            learner.weights.theta = start.copy()
            learner.weights.theta[place] += step
            ends.append(loss_and_gradient(policy, data, loss)[0])
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-9)


def test_the_first_ratio_is_one() -> None:
    policy = policy_with(2)
    metrics = asyncio.run(policy.update(batch_of(mixed_data(policy)), Ppo(), Adam(lr=0.0)))
    assert metrics.ratio_mean == pytest.approx(1, abs=1e-9)
    assert metrics.ratio_max == pytest.approx(1, abs=1e-9)
    assert metrics.clip_fraction == 0


def test_entropy_is_that_of_the_choice() -> None:
    policy = backend()
    found = sample(policy, n=1)
    replies = len(policy._learner.options(VIEW).replies)
    metrics = asyncio.run(policy.update(batch_of([datum_of(found, [1.0])]), Ppo(), Adam(lr=0.1)))
    assert metrics.entropy == pytest.approx(np.log(replies))


def test_a_batch_without_data_changes_nothing() -> None:
    policy = policy_with(3)
    before = policy._learner.weights.theta.copy()
    asyncio.run(policy.update(batch_of([]), Ppo(), Adam(lr=0.1)))
    assert np.array_equal(policy._learner.weights.theta, before)
    assert policy._learner.weights.step == 0


def test_a_good_reply_becomes_likelier_and_a_bad_one_less() -> None:
    for advantage in (1.0, -1.0):
        policy = backend()
        [reply] = sample(policy, seed=11)
        asyncio.run(policy.update(batch_of([datum_of([reply], [advantage])]), Ppo(), Adam(lr=0.1)))
        share = [c.tokens for c in sample(policy, n=400)].count(reply.tokens) / 400
        assert share > 0.3 if advantage > 0 else share < 0.05


def test_adam_by_hand() -> None:
    weights = Weights.zeros(2)
    settings = Adam(lr=0.1, beta1=0.5, beta2=0.5, eps=0.0, weight_decay=0.5, grad_clip_norm=1.0)
    assert weights.descend(np.array([3.0, 4.0]), settings) == 5
    assert weights.theta == pytest.approx([-0.1, -0.1])
    assert weights.mean == pytest.approx([0.3, 0.4])
    weights.descend(np.array([0.6, -0.8]), settings)
    mean = np.array([0.45, -0.2]) / 0.75
    root = np.sqrt(np.array([0.27, 0.48]) / 0.75)
    assert weights.theta == pytest.approx(-0.1 * 0.95 - 0.1 * mean / root)
