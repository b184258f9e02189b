"""State keys, and how well one fits."""

from difflib import SequenceMatcher

import pytest
from groups import episodes, scored, step
from hypothesis import given
from hypothesis import strategies as st

from agentic_rl.advantage.state_key import StateKey, build, state_keys
from agentic_rl.advantage.state_sharing import StateSharing, state_sharing
from agentic_rl.errors import ConfigError
from agentic_rl.types import StateFacts

EMPTY = StateFacts("digest-1", (), "shelf 1")
HOLDING = StateFacts("digest-2", ("mug 1",), "shelf 1")
ELSEWHERE = StateFacts("digest-3", (), "shelf 2")


def distinct(key: str, *states: StateFacts) -> int:
    return len(set(build(key)([step("You see nothing.", state) for state in states])))


@pytest.mark.parametrize("name", state_keys.names())
def test_every_key_satisfies_the_protocol(name: str) -> None:
    key = state_keys.get(name)()
    assert isinstance(key, StateKey)
    assert len(key([step("a", EMPTY), step("b", EMPTY)])) == 2


def test_keys_tell_apart_what_they_name() -> None:
    assert distinct("observation", EMPTY, HOLDING, ELSEWHERE) == 1
    assert distinct("observation_inventory", EMPTY, HOLDING) == 2
    assert distinct("observation_inventory", EMPTY, ELSEWHERE) == 1
    assert distinct("observation_location", EMPTY, ELSEWHERE) == 2
    assert distinct("observation_location", EMPTY, HOLDING) == 1


@pytest.mark.parametrize("name", ["observation_inventory", "observation_location"])
def test_a_key_without_the_engines_facts_says_what_to_type(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name} needs .* env.engine=compiled"):
        build(name)([step()])


@given(st.lists(st.text("ab ", max_size=6), max_size=12), st.sampled_from([0.5, 0.8, 0.95]))
def test_similarity_is_the_greedy_clustering_of_its_source(
    texts: list[str], threshold: float
) -> None:
    firsts: list[str] = []
    expected = []
    for text in texts:
        near = [SequenceMatcher(None, text, first).ratio() >= threshold for first in firsts]
        if True not in near:
            firsts.append(text)
            near.append(True)
        expected.append(near.index(True))
    key = build({"name": "similarity", "threshold": threshold})
    assert list(key([step(text) for text in texts])) == expected


def test_similarity_refuses_a_threshold_that_matches_everything() -> None:
    with pytest.raises(ConfigError, match=r"threshold=0\.0 is not above 0"):
        build({"name": "similarity", "threshold": 0.0})


def test_sharing_counts_steps_and_states_the_engine_tells_apart() -> None:
    steps = [[step("a", EMPTY), step("b", EMPTY)], [step("a", HOLDING), step("c", EMPTY)]]
    group = scored([*steps, [step("b", EMPTY)]], [[0.0] * 2, [0.0] * 2, [0.0]])
    assert state_sharing([group]) == StateSharing(shared_rate=0.8, aliased_rate=0.5)
    finer = state_sharing([group], "observation_inventory")
    assert finer == StateSharing(shared_rate=0.4, aliased_rate=0.0)


def test_states_of_different_groups_are_never_shared() -> None:
    assert state_sharing([episodes([1.0]), episodes([1.0])]) == StateSharing(0.0, None)


def test_sharing_without_digests_or_steps_is_unknown() -> None:
    assert state_sharing([episodes([1.0, 0.0])]) == StateSharing(1.0, None)
    assert state_sharing([]) == StateSharing(None, None)
