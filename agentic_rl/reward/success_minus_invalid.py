"""Success, less a penalty for every invalid action."""

from dataclasses import dataclass

from agentic_rl.reward import rewards
from agentic_rl.reward._offences import checked, signal
from agentic_rl.types import RewardSignal, Trajectory


@rewards.register("success_minus_invalid")
@dataclass(frozen=True)
class SuccessMinusInvalid:
    """return = success * 1[won] - penalty * (number of steps that offend)

    Success lies on the last step, each penalty on the step that earned it.
    """

    success: float = 1.0
    penalty: float = 0.1
    counts: tuple[str, ...] = ("malformed", "inadmissible")

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", checked(self.counts, self.penalty))

    def __call__(self, trajectory: Trajectory) -> RewardSignal:
        return signal(trajectory, self.success, self.penalty, self.counts)
