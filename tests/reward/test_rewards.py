"""Rewards of steps that are malformed, refused or cut."""

import math

import pytest

from agentic_rl.errors import ConfigError
from agentic_rl.reward import rewards
from agentic_rl.reward.success_minus_invalid import SuccessMinusInvalid
from agentic_rl.reward.success_penalized_steps import SuccessPenalizedSteps
from agentic_rl.types import Completion, EnvStep, Step, StopReason, Task, Trajectory

TASK = Task("game/1", "train", "pick", "game.tw-pddl", "digest")


def step(kind: str = "good") -> Step:
    action = None if kind in ("malformed", "cut") else "look"
    return Step(
        observation="o",
        admissible_actions=("look",),
        state=None,
        completion=Completion((1,), (0.0,), "look", "length" if kind == "cut" else "stop"),
        action=action,
        malformed=kind == "malformed",
        cut=kind == "cut",
        result=EnvStep("o", ("look",), admissible=kind == "good"),
    )


def trajectory(*kinds: str, won: bool) -> Trajectory:
    steps = tuple(step(kind) for kind in kinds)
    return Trajectory(TASK, "g", 0, steps, (), won, StopReason.WON)


def test_success_less_each_invalid_action() -> None:
    signal = SuccessMinusInvalid()(
        trajectory("good", "malformed", "inadmissible", "cut", "good", won=True)
    )
    assert signal.task == (0.0, 0.0, 0.0, 0.0, 1.0)
    assert signal.penalties == (0.0, -0.1, -0.1, 0.0, 0.0)
    assert signal.total == 0.8


def test_no_success_no_task_reward() -> None:
    signal = SuccessMinusInvalid()(trajectory("inadmissible", won=False))
    assert signal.total == -0.1


def test_the_large_success_counts_malformed_steps_alone() -> None:
    signal = SuccessPenalizedSteps()(trajectory("malformed", "inadmissible", "good", won=True))
    assert signal.task == (0.0, 0.0, 10.0)
    assert signal.penalties == (-0.1, 0.0, 0.0)


@pytest.mark.parametrize("name", rewards.names())
def test_a_trajectory_without_steps_has_an_empty_signal(name: str) -> None:
    signal = rewards.get(name)()(trajectory(won=False))
    assert (signal.task, signal.penalties, signal.total) == ((), (), 0.0)


@pytest.mark.parametrize("name", rewards.names())
@pytest.mark.parametrize("kind", ["malformed", "inadmissible", "cut"])
def test_each_kind_can_be_counted(name: str, kind: str) -> None:
    reward = rewards.build({"name": name, "counts": [kind], "penalty": 0.5})
    assert reward(trajectory("good", kind, won=False)).penalties == (0.0, -0.5)
    none = rewards.build({"name": name, "counts": []})
    assert none(trajectory(kind, won=False)).total == 0.0


@pytest.mark.parametrize("name", rewards.names())
def test_no_penalty_is_no_negative_zero(name: str) -> None:
    reward = rewards.build({"name": name, "penalty": 0.0})
    assert math.copysign(1, reward(trajectory("malformed", won=False)).penalties[0]) == 1


@pytest.mark.parametrize("name", rewards.names())
def test_slips_are_worded(name: str) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'malformed'"):
        rewards.build({"name": name, "counts": ["malfromed"]})
    with pytest.raises(ConfigError, match=r"penalty=-0\.1 is below 0"):
        rewards.build({"name": name, "penalty": -0.1})
    with pytest.raises(ConfigError, match="Did you mean 'penalty'"):
        rewards.build({"name": name, "penaltyy": 1})
