"""Which steps a penalty falls on, and the signal that follows."""

from collections.abc import Sequence

from agentic_rl.errors import ConfigError, did_you_mean
from agentic_rl.types import RewardSignal, Trajectory

OFFENCES = ("malformed", "inadmissible", "cut")
"""No action could be read; the environment refused it; the reply was cut by its length."""


def checked(counts: Sequence[str], penalty: float) -> tuple[str, ...]:
    """The kinds as a tuple; ConfigError for one that no step has, or a penalty below 0."""
    for kind in counts:
        if kind not in OFFENCES:
            near = did_you_mean(kind, OFFENCES)
            raise ConfigError(f"counts: '{kind}' is not one of {', '.join(OFFENCES)}.{near}")
    if not penalty >= 0:
        raise ConfigError(f"penalty={penalty} is below 0: it is taken off, so write it positive")
    return tuple(counts)


def signal(
    trajectory: Trajectory, success: float, penalty: float, counts: Sequence[str]
) -> RewardSignal:
    """Success on the last step of a won game, one penalty on each step that offends."""
    task = [0.0] * len(trajectory.steps)
    if task and trajectory.won:
        task[-1] = success
    penalties = (
        0.0 - penalty if any(getattr(step, kind) for kind in counts) else 0.0
        for step in trajectory.steps
    )
    return RewardSignal(tuple(task), tuple(penalties))
