"""What every estimator does with a batch: refuse what is no number, take statistics, hand out.

Statistics are taken over the trajectories that are there. `planned_size` matters in one place,
`unbaselined`: a group shrunk by failures never turns into one without a baseline.
"""

import math
from collections.abc import Sequence

from agentic_rl.errors import ConfigError, IntegrityError, did_you_mean
from agentic_rl.types import ScoredGroup

LARGEST = 1e100
"""No honest reward is larger, and the squares of smaller ones stay finite."""


def checked(batch: Sequence[ScoredGroup]) -> None:
    """IntegrityError, naming the trajectory, where shapes differ or a reward is NaN or infinite."""
    for group in batch:
        for trajectory, signal in zip(group.group.trajectories, group.signals, strict=True):
            if len(signal.task) != len(trajectory.steps):
                raise IntegrityError(
                    f"task {trajectory.task.task_id}, branch {trajectory.branch}:"
                    f" {len(signal.task)} rewards for {len(trajectory.steps)} steps"
                )
            for kind, values in (("reward", signal.task), ("penalty", signal.penalties)):
                for step, value in enumerate(values):
                    if not abs(value) <= LARGEST:
                        raise IntegrityError(
                            f"task {trajectory.task.task_id}, branch {trajectory.branch},"
                            f" step {step}: the {kind} is {value}, which no advantage can be"
                            " taken of. Mend the reward so that it returns finite numbers."
                        )


def one_of(field: str, value: str, choices: tuple[str, ...]) -> None:
    """ConfigError, with a near match, for a value that is no choice."""
    if value not in choices:
        near = did_you_mean(value, choices)
        raise ConfigError(f"{field}={value} is not one of {', '.join(choices)}.{near}")


def mean(values: Sequence[float]) -> float:
    """Exactly the common value where all are equal, so that equal returns give exact zeros."""
    if min(values) == max(values):
        return values[0]
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float], ddof: int) -> float:
    """Standard deviation; 0 where there are too few values for one."""
    if len(values) <= ddof:
        return 0.0
    squares = math.fsum([value * value for value in centred(values)])
    return math.sqrt(squares / (len(values) - ddof))


def centred(values: Sequence[float]) -> list[float]:
    """Each value less the mean of all; nothing for nothing."""
    if not values:
        return []
    centre = mean(values)
    return [value - centre for value in values]


def unbaselined(group: ScoredGroup, members: int, singleton: str) -> bool:
    """Whether a lone value stays as it is: where `raw` is asked for, in a group planned as one."""
    return members == 1 and singleton == "raw" and group.planned_size <= 1


def spread(group: ScoredGroup, values: Sequence[float]) -> list[list[float]]:
    """One value a trajectory, given to each of its steps."""
    return [
        [value] * len(trajectory.steps)
        for trajectory, value in zip(group.group.trajectories, values, strict=True)
    ]


def discounted(rewards: Sequence[float], gamma: float) -> list[float]:
    """R_t = r_t + gamma * R_{t+1}"""
    returns = [0.0] * len(rewards)
    following = 0.0
    for step in range(len(rewards) - 1, -1, -1):
        following = rewards[step] + gamma * following
        returns[step] = following
    return returns
