"""What every estimator does with a batch: refuse what is no number, hand a value to all steps."""

import math
from collections.abc import Sequence

from agentic_rl.errors import IntegrityError
from agentic_rl.types import ScoredGroup


def checked(batch: Sequence[ScoredGroup]) -> None:
    """IntegrityError, naming the trajectory, where shapes differ or a reward is NaN or infinite."""
    for group in batch:
        for trajectory, signal in zip(group.group.trajectories, group.signals, strict=True):
            where = f"task {trajectory.task.task_id}, branch {trajectory.branch}"
            if len(signal.task) != len(trajectory.steps):
                raise IntegrityError(
                    f"{where}: {len(signal.task)} rewards for {len(trajectory.steps)} steps"
                )
            for kind, values in (("reward", signal.task), ("penalty", signal.penalties)):
                for step, value in enumerate(values):
                    if not math.isfinite(value):
                        raise IntegrityError(
                            f"{where}, step {step}: the {kind} is {value}."
                            " An advantage needs finite numbers: mend the reward."
                        )


def spread(group: ScoredGroup, values: Sequence[float]) -> list[list[float]]:
    """One value a trajectory, given to each of its steps."""
    return [
        [value] * len(trajectory.steps)
        for trajectory, value in zip(group.group.trajectories, values, strict=True)
    ]
