"""Estimators that give a whole trajectory one value, by the numbers of their sources."""

import pytest
from groups import episodes, flat, scored, step

from agentic_rl.advantage import advantages
from agentic_rl.advantage.group_mean import GroupMean
from agentic_rl.advantage.group_normalized import GroupNormalized
from agentic_rl.advantage.max_rl import MaxRl
from agentic_rl.advantage.reinforce_pp import ReinforcePp
from agentic_rl.advantage.rloo import Rloo
from agentic_rl.errors import ConfigError, IntegrityError

RETURNS = [0.8, -0.3, 1.0, 0.0]
WHOLE = [
    GroupMean(),
    GroupNormalized(),
    GroupNormalized(scope="batch"),
    Rloo(),
    MaxRl(),
    ReinforcePp(baseline="group"),
]


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (GroupMean(), [0.425, -0.675, 0.625, -0.375]),
        (GroupNormalized(), [0.6813, -1.082, 1.0019, -0.6011]),
        (GroupNormalized(ddof=0, eps=1e-4), [0.7865, -1.2492, 1.1566, -0.694]),
        (GroupNormalized(ddof=0), [0.7867, -1.2494, 1.1569, -0.6941]),
        (GroupNormalized(eps=1e-4), [0.6812, -1.0818, 1.0017, -0.601]),
        (Rloo(), [0.5667, -0.9, 0.8333, -0.5]),
    ],
)
def test_worked_values(estimator: object, expected: list[float]) -> None:
    assert flat(estimator([episodes(RETURNS)])) == pytest.approx(expected, abs=1e-4)


def test_max_rl_weighs_a_rare_success_up() -> None:
    assert flat(MaxRl()([episodes([1, 0, 0, 0])])) == [3, -1, -1, -1]
    assert flat(MaxRl()([episodes([-1, -2])])) == [0, 0]


def test_every_step_of_a_trajectory_gets_its_value() -> None:
    assert GroupMean()([episodes([1.0, 0.0], steps=3)]) == [[[0.5] * 3, [-0.5] * 3]]


def test_a_reward_on_any_step_counts() -> None:
    steps = [[step()] * 2, [step()] * 2]
    group = scored(steps, [[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-0.5, 0.0]])
    assert flat(GroupMean()([group])) == [0.75, 0.75, -0.75, -0.75]


def test_whitening_weighs_tokens() -> None:
    group = scored([[step(tokens=2)], [step(tokens=4)]], [[0.8], [-0.3]])
    assert flat(ReinforcePp()([group])) == pytest.approx([1.291, -0.6455], abs=1e-4)


def test_whitening_after_the_groups_baseline() -> None:
    first = scored([[step(tokens=2)], [step(tokens=4)]], [[0.8], [-0.3]])
    second = scored([[step(tokens=n)] for n in (1, 3, 2)], [[1.0], [0.0], [0.0]])
    expected = [1.537, -0.795, 1.7843, -0.3357, -0.3357]
    values = flat(ReinforcePp(baseline="group")([first, second]))
    assert values == pytest.approx(expected, abs=1e-4)


def test_return_to_go_leaves_out_what_was_earned_before() -> None:
    group = scored([[step()] * 3], [[0.0, 0.0, 1.0]], [[-0.5, 0.0, 0.0]])
    first, second, third = flat(ReinforcePp()([group]))
    assert first < second == third
    discounted = flat(ReinforcePp(gamma=0.5)([scored([[step()] * 3], [[0.0, 0.0, 1.0]])]))
    assert discounted[0] < discounted[1] < discounted[2]


def test_a_batchwide_deviation_is_that_of_all_returns() -> None:
    batch = [episodes([1.0, 0.0]), episodes([3.0, 3.0])]
    values = flat(GroupNormalized(scope="batch", eps=0.0)(batch))
    assert values == pytest.approx([1 / 3, -1 / 3, 0, 0])


@pytest.mark.parametrize("estimator", WHOLE, ids=repr)
def test_equal_returns_give_exact_zeros(estimator: object) -> None:
    batch = [episodes([0.1] * 3, steps=2), episodes([0.1] * 7, steps=2)]
    assert flat(estimator(batch)) == [0.0] * 20


def test_equal_returns_of_one_step_whiten_to_exact_zeros() -> None:
    assert flat(ReinforcePp()([episodes([0.1] * 3), episodes([0.1] * 7)])) == [0.0] * 10


@pytest.mark.parametrize("name", advantages.names())
def test_groups_and_trajectories_may_be_empty(name: str) -> None:
    estimator = advantages.get(name)()
    empty = scored([], [], evidence=())
    stub = scored([[], [step()]], [[], [1.0]], evidence=((), (0.5,)))
    values = estimator([empty, stub])
    assert [[len(steps) for steps in group] for group in values] == [[], [0, 1]]
    assert list(estimator([])) == []


@pytest.mark.parametrize("name", ["group_normalized", "rloo"])
def test_a_lone_trajectory_is_raw_or_zero(name: str) -> None:
    alone = episodes([0.8], planned_size=1)
    assert flat(advantages.get(name)(singleton="raw")([alone])) == [0.8]
    assert flat(advantages.get(name)(singleton="zero")([alone])) == [0.0]


@pytest.mark.parametrize(
    "estimator",
    [
        GroupNormalized(singleton="raw"),
        Rloo(singleton="raw"),
        ReinforcePp(baseline="group", singleton="raw"),
    ],
    ids=repr,
)
def test_a_group_that_failures_shrank_to_one_never_loses_its_baseline(estimator: object) -> None:
    assert flat(estimator([episodes([0.8], planned_size=8)])) == [0.0]


def test_leave_one_out_counts_who_is_there() -> None:
    whole, shrunk = episodes([1.0, 0.0, 0.0]), episodes([1.0, 0.0, 0.0], planned_size=8)
    assert Rloo()([whole]) == Rloo()([shrunk])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 1e300])
@pytest.mark.parametrize("name", advantages.names())
def test_a_reward_that_is_no_number_is_refused_by_name(name: str, bad: float) -> None:
    group = scored([[step()], [step()] * 2], [[0.0], [0.0, bad]], evidence=((0.0,), (0.0, 0.0)))
    with pytest.raises(IntegrityError, match=r"task game/1, branch 1, step 1: the reward is"):
        advantages.get(name)()([group])


def test_a_penalty_that_is_no_number_is_refused_by_name() -> None:
    group = scored([[step()]], [[0.0]], [[float("nan")]])
    with pytest.raises(IntegrityError, match="branch 0, step 0: the penalty is nan"):
        GroupMean()([group])


@pytest.mark.parametrize(
    ("name", "field", "value", "near"),
    [
        ("group_normalized", "scope", "bach", "batch"),
        ("group_normalized", "singleton", "rav", "raw"),
        ("reinforce_pp", "baseline", "groups", "group"),
        ("step_level", "normalize", "meanstd", "mean_std"),
        ("step_level", "penalty", "returns", "return"),
        ("hierarchical", "weights", "nxt", "next"),
    ],
)
def test_an_unknown_choice_names_the_near_one(name: str, field: str, value: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"Did you mean '{near}'"):
        advantages.build({"name": name, field: value})
