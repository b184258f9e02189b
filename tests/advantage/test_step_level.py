"""The conventions of step-level estimators, one at a time."""

import pytest
from groups import episodes, flat, scored, step

from agentic_rl.advantage.hierarchical import Hierarchical
from agentic_rl.advantage.step_level import StepLevel
from agentic_rl.errors import ConfigError


def test_a_state_met_once_has_no_step_term() -> None:
    group = scored([[step("a")], [step("b")]], [[1.0], [0.0]])
    assert flat(StepLevel(episode_weight=0.0)([group])) == [0.0, 0.0]
    assert flat(Hierarchical()([group])) == [0.0, 0.0]


def test_repeated_visits_count_each_or_once() -> None:
    steps = [[step("a"), step("a"), step("a")], [step("a")]]
    group = scored(steps, [[0.0, 0.0, 1.0], [0.0]])
    every = StepLevel(episode_weight=0.0, gamma=1.0)
    first = StepLevel(episode_weight=0.0, gamma=1.0, repeats=False)
    assert flat(every([group])) == [0.25, 0.25, 0.25, -0.75]
    assert flat(first([group])) == [0.5, 0.5, 0.5, -0.5]


def test_a_state_that_one_trajectory_alone_repeats_is_no_baseline_when_visits_count_once() -> None:
    group = scored([[step("a"), step("a")], [step("b")]], [[0.0, 1.0], [0.0]])
    assert flat(StepLevel(episode_weight=0.0, repeats=False)([group])) == [0.0, 0.0, 0.0]


def test_long_episodes_weigh_more_where_the_baseline_is_over_steps() -> None:
    group = scored([[step("a")] * 3, [step("b")]], [[0.0] * 3, [1.0]])
    over_steps = StepLevel(step_weight=0.0)
    over_trajectories = StepLevel(step_weight=0.0, baseline="trajectories")
    assert flat(over_steps([group])) == [-0.25, -0.25, -0.25, 0.75]
    assert flat(over_trajectories([group])) == [-0.5, -0.5, -0.5, 0.5]


def test_a_lone_episode_is_raw_only_where_it_was_planned_alone() -> None:
    raw = StepLevel(singleton="raw", step_weight=0.0)
    assert flat(raw([episodes([7.0])])) == [7.0]
    assert flat(raw([episodes([7.0], planned_size=8)])) == [0.0]
    assert flat(StepLevel(step_weight=0.0)([episodes([7.0])])) == [0.0]


def test_context_is_never_taken_from_another_trajectory() -> None:
    steps = [[step("a"), step("b")], [step("b")], [step("c"), step("b")]]
    group = scored(steps, [[0.0, 1.0], [0.0], [0.0, 0.0]])
    levels = Hierarchical(history=1, normalize="mean", gamma=1.0, eps=1e-12)
    # No context of two states is shared, so that every b is compared with the other two alone.
    assert flat(levels([group])) == pytest.approx([0.0, 2 / 3, -1 / 3, 0.0, -1 / 3])


@pytest.mark.parametrize("spec", ["similarity", {"name": "similarity", "threshold": 0.5}])
def test_a_state_key_is_a_name_or_a_name_with_options(spec: object) -> None:
    group = scored([[step("shelf 1: a mug")], [step("shelf 1: a cup")]], [[1.0], [0.0]])
    values = flat(StepLevel(episode_weight=0.0, state_key=spec)([group]))
    assert values == ([0.0, 0.0] if spec == "similarity" else [0.5, -0.5])


def test_an_unknown_state_key_names_the_near_one() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'observation_inventory'"):
        StepLevel(state_key="observation_inventry")
    with pytest.raises(ConfigError, match="neither a name nor"):
        Hierarchical(state_key=3)


def test_needs_are_those_of_the_key() -> None:
    assert StepLevel().needs == Hierarchical().needs == frozenset()
    assert StepLevel(state_key="observation_location").needs == {"state"}
    assert Hierarchical(state_key="observation_inventory").needs == {"state"}
