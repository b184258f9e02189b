"""Success, less a penalty for every invalid action."""

from dataclasses import dataclass

from agentic_rl.reward import rewards
from agentic_rl.reward._offences import checked, offends
from agentic_rl.types import RewardSignal, Trajectory


@rewards.register("success_minus_invalid")
@dataclass(frozen=True)
class SuccessMinusInvalid:
    """return = success * 1[won] - penalty * (number of steps that offend)"""

    success: float = 1.0
    penalty: float = 0.1
    counts: tuple[str, ...] = ("malformed", "inadmissible")

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", checked(self.counts))

    def __call__(self, trajectory: Trajectory) -> RewardSignal:
        """Success lies on the last step, each penalty on the step that earned it."""
        task = [0.0] * len(trajectory.steps)
        if task and trajectory.won:
            task[-1] = self.success
        penalties = [
            -self.penalty if offends(step, self.counts) else 0.0 for step in trajectory.steps
        ]
        return RewardSignal(tuple(task), tuple(penalties))
