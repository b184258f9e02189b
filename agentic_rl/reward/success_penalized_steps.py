"""A large success reward, and a small penalty meant for the offending step alone."""

from dataclasses import dataclass

from agentic_rl.reward import rewards
from agentic_rl.reward._offences import checked, signal
from agentic_rl.types import RewardSignal, Trajectory


@rewards.register("success_penalized_steps")
@dataclass(frozen=True)
class SuccessPenalizedSteps:
    """task reward = success on the last step of a won game; penalty off each step that offends

    Whether a penalty reaches earlier steps is for the estimator to say: `advantage.penalty=after`
    keeps it on its own step, as the source does.
    """

    success: float = 10.0
    penalty: float = 0.1
    counts: tuple[str, ...] = ("malformed",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", checked(self.counts, self.penalty))

    def __call__(self, trajectory: Trajectory) -> RewardSignal:
        return signal(trajectory, self.success, self.penalty, self.counts)
