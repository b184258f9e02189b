"""A reward that charges for sampled tokens."""

from dataclasses import dataclass

from agentic_rl.types import RewardSignal, Trajectory


@dataclass(frozen=True)
class Brevity:
    """Pays for success, charges for every sampled token."""

    success: float = 1.0
    per_token: float = 0.001

    def __call__(self, trajectory: Trajectory) -> RewardSignal:
        steps = trajectory.steps
        task = [0.0] * len(steps)
        if steps and trajectory.won:
            task[-1] = self.success
        penalties = [-self.per_token * len(step.completion.tokens) for step in steps]
        return RewardSignal(task=tuple(task), penalties=tuple(penalties))
