"""Small groups for the tests of estimators."""

from collections.abc import Sequence

from agentic_rl.types import (
    Completion,
    EnvStep,
    RewardSignal,
    ScoredGroup,
    StateFacts,
    Step,
    StopReason,
    Task,
    Trajectory,
    TrajectoryGroup,
)

TASK = Task("game/1", "train", "pick", "game.tw-pddl", "digest")


def step(observation: str = "o", state: StateFacts | None = None, tokens: int = 1) -> Step:
    return Step(
        observation=observation,
        admissible_actions=("look",),
        state=state,
        completion=Completion((7,) * tokens, (-0.5,) * tokens, "look", "stop"),
        action="look",
        malformed=False,
        cut=False,
        result=EnvStep("next", ("look",)),
    )


def trajectory(branch: int, steps: Sequence[Step], won: bool = False) -> Trajectory:
    return Trajectory(TASK, "g", branch, tuple(steps), (), won, StopReason.MAX_STEPS)


def scored(
    steps: Sequence[Sequence[Step]],
    task: Sequence[Sequence[float]],
    penalties: Sequence[Sequence[float]] | None = None,
    **fields: object,
) -> ScoredGroup:
    """steps[i][t], task[i][t] and penalties[i][t], which are 0 where left out."""
    members = tuple(trajectory(i, row) for i, row in enumerate(steps))
    fines = penalties or [[0.0] * len(row) for row in task]
    signals = tuple(RewardSignal(tuple(r), tuple(p)) for r, p in zip(task, fines, strict=True))
    settings = {"planned_size": len(members), **fields}
    return ScoredGroup(TrajectoryGroup(TASK, members), signals, **settings)


def episodes(returns: Sequence[float], steps: int = 1, **fields: object) -> ScoredGroup:
    """One trajectory a return, which is earned on the last step; all steps look the same."""
    rows = [[step()] * steps for _ in returns]
    return scored(rows, [[0.0] * (steps - 1) + [value] for value in returns], **fields)


def flat(advantages: Sequence[Sequence[Sequence[float]]]) -> list[float]:
    return [value for group in advantages for steps in group for value in steps]
