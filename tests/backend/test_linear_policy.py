"""The embedded policy as a backend: tokens, log-probabilities, samples, usage, checkpoints."""

import asyncio
import itertools
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_play import (
    PROTOCOL,
    VIEW,
    backend,
    batch_of,
    datum_of,
    params,
    played,
    prompt_of,
    sample,
    wins,
)
from omegaconf import OmegaConf

from agentic_rl.backend import backends
from agentic_rl.backend.linear import LinearBackend
from agentic_rl.backend.linear.choice import Memory
from agentic_rl.errors import BackendError, ConfigError, RunFolderError
from agentic_rl.interfaces import Backend
from agentic_rl.loss.ppo import Ppo
from agentic_rl.training import Adam, Checkpoint, Usage
from agentic_rl.types import Demonstration, Span

CONF = Path(__file__).parents[2] / "conf" / "backend" / "linear.yaml"


def trained(seed: int = 0, **fields: object) -> LinearBackend:
    policy = backend(**fields)
    size = policy._learner.table.size
    policy._learner.weights.theta = np.random.default_rng(seed).normal(size=size) / 3
    return policy


def every_reply(policy: LinearBackend, view=VIEW) -> list[tuple[int, ...]]:
    learner = policy._learner
    return [learner.replies.tokens[reply] for reply in learner.options(view).replies]


def test_yaml_builds_the_default() -> None:
    made = backends.build(OmegaConf.to_container(OmegaConf.load(CONF)))
    assert made == LinearBackend()
    assert isinstance(made.capabilities.losses, frozenset)
    methods = [name for name in vars(Backend) if not name.startswith("_")]
    assert "imitate" in methods
    assert all(hasattr(made, name) for name in methods)


def test_no_reply_begins_another_and_every_kind_is_there() -> None:
    policy = backend()
    replies = every_reply(policy)
    for a, b in itertools.permutations(replies, 2):
        assert a != b[: len(a)]
    actions = [PROTOCOL.parse(policy.tokenizer.decode(reply)).action for reply in replies]
    assert [a for a in actions if a in VIEW.actions] == list(VIEW.actions)
    assert any(a is not None and a not in VIEW.actions for a in actions)
    assert actions.count(None) == 2


def test_help_is_no_candidate_and_an_empty_list_still_has_replies() -> None:
    policy = backend()
    with_help = replace(VIEW, actions=("help", *VIEW.actions))
    assert every_reply(policy, with_help) == every_reply(policy)
    assert sample(policy, replace(VIEW, actions=()))[0].text


def test_an_action_that_holds_the_end_marker_is_never_said() -> None:
    policy = backend()
    policy.bind(lambda action: f"<{action}>")
    hostile = replace(VIEW, actions=(*VIEW.actions, "go to z<|im_end|>"))
    assert len(every_reply(policy, hostile)) == len(every_reply(policy))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.floats(0.3, 3))
def test_token_logprobs_sum_to_the_softmax(seed: int, temperature: float) -> None:
    policy = trained(seed)
    learner = policy._learner
    options = learner.options(VIEW)
    scores = learner.scores(options.columns) / temperature
    log_softmax = scores - math.log(math.fsum(np.exp(scores)))
    for completion in sample(policy, n=5, seed=seed, temperature=temperature):
        place = every_reply(policy).index(completion.tokens)
        assert math.fsum(completion.logprobs) == pytest.approx(log_softmax[place], abs=1e-9)
        assert max(completion.logprobs) <= 0


def test_next_token_probabilities_form_a_distribution() -> None:
    """Over all replies that share a beginning, the next tokens' probabilities sum to 1."""
    policy = trained(3)
    by_beginning: dict[tuple[int, ...], dict[int, float]] = {}
    found = sample(policy, n=4000, seed=1, temperature=2.0)
    assert {c.tokens for c in found} == set(every_reply(policy))
    for completion in found:
        for place, logprob in enumerate(completion.logprobs):
            options = by_beginning.setdefault(completion.tokens[:place], {})
            options[completion.tokens[place]] = math.exp(logprob)
    for options in by_beginning.values():
        assert math.fsum(options.values()) == pytest.approx(1)


def test_samples_follow_the_distribution() -> None:
    policy = trained(4)
    found = sample(policy, n=4000, seed=2)
    for tokens in set(every_reply(policy)):
        mine = [completion for completion in found if completion.tokens == tokens]
        if not mine:
            continue
        expected = math.exp(math.fsum(mine[0].logprobs))
        spread = math.sqrt(expected * (1 - expected) / len(found))
        assert abs(len(mine) / len(found) - expected) < 5 * spread + 1e-3


def test_the_seed_alone_decides() -> None:
    first, second = trained(), trained()
    sample(second, n=3, seed=9)
    a, b = sample(first, n=8, seed=5), sample(second, n=8, seed=5)
    assert [c.tokens for c in a] == [c.tokens for c in b]
    assert [c.logprobs for c in a] == [c.logprobs for c in b]
    assert [c.tokens for c in sample(first, n=8, seed=6)] != [c.tokens for c in a]
    assert len({c.tokens for c in a}) > 1


def test_only_the_view_is_read() -> None:
    policy = trained()
    plain = prompt_of(VIEW)
    other = replace(plain.task, walkthrough=("look",), task_id="b", task_type="y")
    twin = replace(plain, task=other, branch=5, turn=9, tokens=(), messages=())
    a = asyncio.run(policy.sample(plain, 4, params(1)))
    b = asyncio.run(policy.sample(twin, 4, params(1)))
    assert [c.text for c in a] == [c.text for c in b]
    assert not any("secret" in text for text in policy._learner.replies.texts)


def test_cold_samples_take_the_best_and_ties_stay_even() -> None:
    policy = trained(6)
    assert len({c.tokens for c in sample(policy, n=50, temperature=0.0)}) == 1
    assert len({c.tokens for c in sample(backend(), n=200, temperature=0.0)}) > 5


def test_a_reply_longer_than_allowed_is_cut() -> None:
    policy = trained()
    whole = sample(policy, n=20, seed=3)
    for size in (1, 9):
        for full, cut in zip(whole, sample(policy, n=20, seed=3, max_tokens=size), strict=True):
            assert cut.tokens == full.tokens[:size]
            assert cut.logprobs == full.logprobs[:size]
            assert cut.stop_reason == ("stop" if cut.tokens == full.tokens else "length")
            assert policy.tokenizer.decode(cut.tokens).removesuffix("<|im_end|>") == cut.text
    assert {c.stop_reason for c in whole} == {"stop"}
    assert not any("<|im_end|>" in c.text for c in whole)


def test_teacher_forced_values_equal_the_sampled_ones() -> None:
    policy = trained()
    found = [*sample(policy, n=3, temperature=0.7), *sample(policy, n=3, max_tokens=4, seed=1)]
    datum = datum_of(found, [1.0] * 6)
    scored = asyncio.run(policy.score(list(datum.tokens), datum.spans))
    assert scored == [list(completion.logprobs) for completion in found]
    wrong = [replace(datum.spans[0], start=0, end=len(found[0].tokens))]
    with pytest.raises(BackendError, match="are not those of sample"):
        asyncio.run(policy.score(list(datum.tokens), wrong))


def test_usage_counts_a_shared_prompt_once() -> None:
    policy = backend()
    found = sample(policy, n=4)
    datum = datum_of(found, [1.0, -1.0, 1.0, -1.0])
    asyncio.run(policy.update(batch_of([datum]), Ppo(), Adam(lr=0.1)))
    sampled = sum(len(c.tokens) for c in found)
    assert policy.usage == Usage(prefill=3, sampled=sampled, trained=sampled + 8)


def test_samples_are_forgotten_once_trained_on() -> None:
    policy = backend()
    datum = datum_of(sample(policy, n=2), [1.0, -1.0])
    asyncio.run(policy.update(batch_of([datum]), Ppo(), Adam(lr=0.1)))
    with pytest.raises(BackendError, match="no longer knows sample"):
        asyncio.run(policy.update(batch_of([datum]), Ppo(), Adam(lr=0.1)))


def test_memory_is_bounded() -> None:
    memory = Memory(limit=3)
    names = [memory.add(None) for _ in range(5)]  # type: ignore[arg-type]
    assert len(memory) == 3
    with pytest.raises(BackendError, match="the last 3 turns"):
        memory.get(names[1])


def test_imitation_raises_the_demonstrated_action() -> None:
    policy = backend()
    action = "take apple 1 from desk 1"
    shown = [Demonstration(prompt_of(VIEW), action)]
    first = asyncio.run(policy.imitate(shown, Adam(lr=1e-6)))
    metrics = asyncio.run(policy.imitate(shown, Adam(lr=1e-6)))
    assert metrics.loss < first.loss < math.log(9)
    assert policy._learner.weights.step == 0
    texts = [c.text for c in sample(policy, n=50)]
    assert texts.count(PROTOCOL.render(action)) > 40
    with pytest.raises(BackendError, match="'fly' is not among those listed"):
        asyncio.run(policy.imitate([Demonstration(prompt_of(VIEW), "fly")], Adam(lr=1.0)))


def learn(policy: LinearBackend, updates: range) -> list[object]:
    found = []
    for update in updates:
        data = played(policy, [f"toy-move-3-{n}" for n in range(4)], update)
        found.append(asyncio.run(policy.update(batch_of(data), Ppo(), Adam(lr=0.05))))
    return found


def test_a_loaded_checkpoint_continues_bit_for_bit(tmp_path: Path) -> None:
    straight, first, second = backend(), backend(), backend()
    expected = learn(straight, range(6))
    learn(first, range(3))
    saved = asyncio.run(first.save(tmp_path, "update-3"))
    assert saved == Checkpoint("update-3", str(tmp_path), str(tmp_path))
    asyncio.run(second.load(saved, optimizer=True))
    assert learn(second, range(3, 6)) == expected[3:]
    assert np.array_equal(second._learner.weights.theta, straight._learner.weights.theta)
    asyncio.run(second.load(saved, optimizer=False))
    assert second._learner.weights.step == 0
    assert not second._learner.weights.mean.any()
    assert [path.name for path in tmp_path.iterdir()] == ["theta.npz"]


def test_broken_or_foreign_checkpoints_are_named(tmp_path: Path) -> None:
    saved = asyncio.run(trained().save(tmp_path, "x"))
    file = tmp_path / "theta.npz"

    def refused(match: str, policy: LinearBackend | None = None) -> None:
        with pytest.raises(RunFolderError, match=match):
            asyncio.run((policy or backend()).load(saved, optimizer=True))

    refused("set backend.feature_bits=17", backend(feature_bits=12))
    whole = file.read_bytes()
    arrays = dict(np.load(file))
    np.savez(file, **{**arrays, "features": np.int64(999)})
    refused("features of version 999")
    np.savez(file, **{**arrays, "theta": np.full(1 << 17, np.nan)})
    refused("no vector of finite numbers")
    np.savez(file, **{**arrays, "theta": np.array([{}], dtype=object)})
    refused("cannot be read as weights")
    np.savez(file, theta=arrays["theta"])
    refused("cannot be read as weights")
    file.write_bytes(whole[: len(whole) // 2])
    refused("cannot be read as weights")
    with file.open("wb") as npy:
        np.save(npy, arrays["theta"])
    refused("it is no .npz file")
    shutil.rmtree(tmp_path)
    refused(r"holds no theta\.npz")


def test_a_wrong_byte_is_named_or_does_no_harm(tmp_path: Path) -> None:
    saved = asyncio.run(backend(feature_bits=10).save(tmp_path, "x"))
    file = tmp_path / "theta.npz"
    whole = file.read_bytes()
    refused = 0
    places = range(0, len(whole), 3)
    for place in places:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            asyncio.run(backend(feature_bits=10).load(saved, optimizer=True))
        except RunFolderError:
            refused += 1
    assert refused > len(places) // 2


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"feature_bits": 40}, "feature_bits=40"),
        ({"warm_start": -1}, "warm_start=-1"),
        ({"imitate_epochs": 0}, "imitate_epochs=0"),
    ],
)
def test_values_out_of_range_are_refused(fields: dict[str, int], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        LinearBackend(**fields)


def test_a_span_of_another_length_is_refused() -> None:
    policy = backend()
    datum = datum_of(sample(policy), [1.0])
    short = replace(datum, spans=(Span(2, 3, datum.spans[0].sample_id, 0, 0, 0),))
    with pytest.raises(BackendError, match="has not the length"):
        asyncio.run(policy.update(batch_of([short]), Ppo(), Adam(lr=0.1)))


def test_it_learns_the_toy_world() -> None:
    """From scratch; every step of it is the same on every Python, so luck has no part in it."""
    policy = backend()
    games = [f"toy-move-3-{n}" for n in range(8)] * 2
    before = wins(policy, games)
    for update in range(16):
        data = played(policy, games, update)
        asyncio.run(policy.update(batch_of(data), Ppo(), Adam(lr=0.1)))
    after = wins(policy, games)
    assert before < 5
    assert after > 11
