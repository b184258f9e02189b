"""What must hold of every estimator, whatever the rewards."""

import math
import random

import pytest
from groups import episodes, flat, scored, step
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rl.advantage.group_mean import GroupMean
from agentic_rl.advantage.group_normalized import GroupNormalized
from agentic_rl.advantage.hierarchical import Hierarchical
from agentic_rl.advantage.max_rl import MaxRl
from agentic_rl.advantage.reinforce_pp import ReinforcePp
from agentic_rl.advantage.rloo import Rloo
from agentic_rl.advantage.step_level import StepLevel
from agentic_rl.types import ScoredGroup

rewards = st.floats(-5, 5).map(lambda value: round(value, 3))
returns = st.lists(rewards, min_size=2, max_size=8)

CENTRED = [
    GroupMean(),
    Rloo(),
    GroupNormalized(),
    GroupNormalized(ddof=0, eps=1e-4),
    StepLevel(step_weight=0.0),
]
GROUPWISE = [
    *CENTRED,
    MaxRl(),
    StepLevel(),
    StepLevel(normalize="mean_std", baseline="trajectories"),
    StepLevel(repeats=False),
    Hierarchical(),
    Hierarchical(base_group=True, normalize="mean", weights="level"),
]
ALL = [*GROUPWISE, GroupNormalized(scope="batch"), ReinforcePp(), ReinforcePp(baseline="group")]


@st.composite
def groups(draw: st.DrawFn) -> ScoredGroup:
    """Trajectories of unequal lengths through few states: many are shared, many repeated."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    states = st.sampled_from("abc")
    steps = [
        [step(draw(states), tokens=draw(st.integers(1, 4))) for _ in range(length)]
        for length in lengths
    ]
    task = [[draw(rewards) for _ in range(length)] for length in lengths]
    fines = [[-abs(draw(rewards)) for _ in range(length)] for length in lengths]
    return scored(steps, task, fines)


def reordered(group: ScoredGroup, order: list[int]) -> ScoredGroup:
    members = group.group.trajectories
    return scored(
        [members[i].steps for i in order],
        [group.signals[i].task for i in order],
        [group.signals[i].penalties for i in order],
    )


@pytest.mark.parametrize("estimator", CENTRED, ids=repr)
@settings(max_examples=30)
@given(returns)
def test_a_groups_advantages_sum_to_zero(estimator: object, values: list[float]) -> None:
    assert math.fsum(flat(estimator([episodes(values)]))) == pytest.approx(0, abs=1e-9)


@given(st.lists(groups(), min_size=1, max_size=3))
def test_whitened_tokens_have_mean_zero_and_variance_one(batch: list[ScoredGroup]) -> None:
    values = flat(ReinforcePp(eps=0.0)(batch))
    tokens = [
        len(step.completion.tokens)
        for group in batch
        for trajectory in group.group.trajectories
        for step in trajectory.steps
    ]
    pairs = list(zip(tokens, values, strict=True))
    assert math.fsum(w * a for w, a in pairs) == pytest.approx(0, abs=1e-6)
    if len(set(values)) > 1:
        variance = math.fsum(w * a * a for w, a in pairs) / (sum(tokens) - 1)
        assert variance == pytest.approx(1)


@pytest.mark.parametrize("estimator", CENTRED, ids=repr)
@settings(max_examples=30)
@given(returns, rewards)
def test_a_shift_changes_nothing(estimator: object, values: list[float], shift: float) -> None:
    moved = [round(value + shift, 3) for value in values]
    assert flat(estimator([episodes(moved)])) == pytest.approx(
        flat(estimator([episodes(values)])), rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize(
    "estimator",
    [
        GroupNormalized(eps=0.0),
        GroupNormalized(eps=0.0, scope="batch"),
        ReinforcePp(eps=0.0),
        StepLevel(normalize="mean_std", eps=1e-12),
        Hierarchical(eps=1e-12),
        MaxRl(),
    ],
    ids=repr,
)
@given(returns, st.sampled_from([0.5, 2.0, 8.0]))
def test_a_positive_scale_changes_nothing(
    estimator: object, values: list[float], scale: float
) -> None:
    scaled = [value * scale for value in values]
    assert flat(estimator([episodes(scaled, 2)])) == pytest.approx(
        flat(estimator([episodes(values, 2)])), rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize("estimator", ALL, ids=repr)
@settings(max_examples=30)
@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_trajectories_does_not_matter(
    estimator: object, group: ScoredGroup, chance: random.Random
) -> None:
    order = list(range(len(group.signals)))
    chance.shuffle(order)
    before = estimator([group])[0]
    after = estimator([reordered(group, order)])[0]
    for place, i in enumerate(order):
        assert after[place] == pytest.approx(before[i], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("estimator", GROUPWISE, ids=repr)
@settings(max_examples=30)
@given(groups(), groups())
def test_one_group_never_touches_another(
    estimator: object, first: ScoredGroup, second: ScoredGroup
) -> None:
    assert estimator([first, second])[0] == estimator([first])[0]


@pytest.mark.parametrize("estimator", ALL, ids=repr)
@settings(max_examples=30)
@given(st.lists(groups(), max_size=3))
def test_every_step_gets_one_finite_number(estimator: object, batch: list[ScoredGroup]) -> None:
    values = estimator(batch)
    shape = [[len(t.steps) for t in group.group.trajectories] for group in batch]
    assert [[len(steps) for steps in group] for group in values] == shape
    assert all(math.isfinite(value) for value in flat(values))


@given(returns)
def test_step_level_on_one_step_episodes_is_its_trajectory_level_counterpart(
    values: list[float],
) -> None:
    group = [episodes(values)]
    for baseline in ("steps", "trajectories"):
        mean = StepLevel(step_weight=0.0, baseline=baseline)
        assert mean(group) == GroupMean()(group)
        std = StepLevel(step_weight=0.0, baseline=baseline, normalize="mean_std")
        assert flat(std(group)) == pytest.approx(flat(GroupNormalized()(group)))
    assert StepLevel(episode_weight=0.0)(group) == GroupMean()(group)


@given(groups())
def test_without_history_hierarchical_is_the_step_term(group: ScoredGroup) -> None:
    for normalize in ("mean", "mean_std"):
        step_term = StepLevel(episode_weight=0.0, normalize=normalize, ddof=0)
        levels = Hierarchical(history=0, normalize=normalize)
        assert flat(levels([group])) == pytest.approx(flat(step_term([group])), rel=1e-5)


@given(groups())
def test_the_step_term_sums_to_zero_over_each_state(group: ScoredGroup) -> None:
    values = flat(StepLevel(episode_weight=0.0)([group]))
    steps = [step for trajectory in group.group.trajectories for step in trajectory.steps]
    for state in "abc":
        of_state = [v for v, s in zip(values, steps, strict=True) if s.observation == state]
        assert math.fsum(of_state) == pytest.approx(0, abs=1e-9)
