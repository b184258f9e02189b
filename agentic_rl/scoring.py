"""Groups of trajectories -> rewards -> advantages, with failures set apart first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rl.config import RolloutConfig
from agentic_rl.interfaces import Advantage, Reward
from agentic_rl.types import (
    Advantages,
    RewardSignal,
    ScoredGroup,
    StopReason,
    Trajectory,
    TrajectoryGroup,
)

TRUNCATED = frozenset({StopReason.MAX_STEPS, StopReason.MAX_TRAJECTORY_TOKENS})
"""The reasons that mean a limit ended the trajectory, not the game."""


@dataclass(frozen=True, slots=True)
class Survivors:
    """The groups left to learn from, and how many were dropped whole."""

    groups: tuple[ScoredGroup, ...]
    groups_dropped: int


def score(groups: Sequence[TrajectoryGroup], reward: Reward, config: RolloutConfig) -> Survivors:
    """Failed trajectories leave their group; a group below `min_group` leaves the batch."""
    kept: list[ScoredGroup] = []
    for group in groups:
        alive = tuple(entry for entry in group.trajectories if not entry.failed)
        if len(alive) < config.min_group:
            continue
        signals = tuple(signal_of(entry, reward, config) for entry in alive)
        kept.append(
            ScoredGroup(replace(group, trajectories=alive), signals, len(group.trajectories))
        )
    return Survivors(tuple(kept), len(groups) - len(kept))


def signal_of(trajectory: Trajectory, reward: Reward, config: RolloutConfig) -> RewardSignal:
    """The reward's signal; `truncation: zero` takes the task reward from one a limit ended."""
    signal = reward(trajectory)
    if config.truncation == "zero" and trajectory.stop_reason in TRUNCATED:
        return replace(signal, task=(0.0,) * len(signal.task))
    return signal


def estimate(
    groups: Sequence[ScoredGroup], advantage: Advantage, config: RolloutConfig
) -> Advantages:
    """advantages[g][i][t]; `truncation: mask` teaches nothing from one that a limit ended."""
    values = advantage(groups) if groups else []
    if config.truncation != "mask":
        return values
    return [
        [
            [0.0] * len(row) if trajectory.stop_reason in TRUNCATED else row
            for trajectory, row in zip(group.group.trajectories, rows, strict=True)
        ]
        for group, rows in zip(groups, values, strict=True)
    ]
