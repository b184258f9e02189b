"""Trajectories -> rows of the tables; the columns are declared in `results.schemas`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rl.scoring import TRUNCATED
from agentic_rl.training import Usage
from agentic_rl.types import (
    TASK_TYPES,
    Phase,
    RewardSignal,
    StopReason,
    Trajectory,
    TrajectoryGroup,
)

Row = dict[str, Any]

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Context:
    """What all rows of one collection share."""

    phase: Phase
    update: int
    sample_seed: int
    reward: str


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def deviation(values: Sequence[float]) -> float | None:
    """The population standard deviation."""
    if not values:
        return None
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / len(values))


def share(count: int, total: int) -> float | None:
    return count / total if total else None


def cost(usage: Usage, prices: Mapping[str, float] | None) -> float | None:
    """Prices are for a million tokens of each kind; None without prices."""
    if not prices:
        return None
    parts = [
        getattr(usage, kind) * prices.get(kind, 0.0) / _MILLION
        for kind in ("prefill", "cached", "sampled", "trained")
    ]
    return math.fsum(parts)


def episode_row(
    trajectory: Trajectory, context: Context, signal: RewardSignal | None, trained: int = 0
) -> Row:
    """`trained` is how many of its tokens the update trained on."""
    steps = trajectory.steps
    return {
        **_keys(trajectory, context),
        "group_id": trajectory.group_id,
        "repeat": trajectory.branch if context.phase == "evaluation" else 0,
        "task_type": trajectory.task.task_type,
        "game_digest": trajectory.task.digest,
        "return": signal.total if signal else None,
        "won": trajectory.won,
        "stop_reason": str(trajectory.stop_reason),
        "error": trajectory.error,
        "steps": len(steps),
        "invalid_actions": trajectory.invalid_actions,
        "malformed": sum(step.malformed for step in steps),
        "inadmissible": sum(step.inadmissible for step in steps),
        "cut": sum(step.cut for step in steps),
        "tokens_prefill": trajectory.prefill,
        "tokens_cached": 0,
        "tokens_sampled": trajectory.sampled,
        "tokens_trained": trained,
        "sample_seed": context.sample_seed,
        "reward": context.reward,
    }


def step_rows(
    trajectory: Trajectory,
    context: Context,
    signal: RewardSignal | None,
    advantages: Sequence[float] | None = None,
) -> list[Row]:
    keys = _keys(trajectory, context)
    rows = []
    for number, step in enumerate(trajectory.steps):
        state = step.state
        rows.append(
            {
                **keys,
                "step": number,
                "state": state.digest if state else None,
                "inventory": ", ".join(state.inventory) if state else None,
                "location": state.location if state else None,
                "action": step.action,
                "malformed": step.malformed,
                "cut": step.cut,
                "admissible": step.action is not None and step.result.admissible,
                "reward": signal.task[number] if signal else None,
                "penalty": signal.penalties[number] if signal else None,
                "advantage": advantages[number] if advantages is not None else None,
                "prompt_tokens": step.prompt_end,
                "completion_tokens": len(step.completion.tokens),
                "logprob_mean": mean(step.completion.logprobs),
                "segment": step.segment,
            }
        )
    return rows


def rollout_columns(groups: Sequence[TrajectoryGroup]) -> Row:
    """The columns of `updates` that count trajectories, failures and steps."""
    every = [entry for group in groups for entry in group.trajectories]
    alive = [entry for entry in every if not entry.failed]
    steps = [step for entry in alive for step in entry.steps]
    stops = {f"stop_{reason}": 0 for reason in StopReason}
    for entry in every:
        stops[f"stop_{entry.stop_reason}"] += 1
    return {
        "success": share(sum(entry.won for entry in alive), len(alive)),
        **_success_by_type(alive),
        "trajectories": len(alive),
        "trajectories_dropped": len(every) - len(alive),
        "retries": sum(entry.attempts - 1 for entry in every),
        "env_errors": sum(entry.env_errors for entry in every),
        "sample_errors": sum(entry.sample_errors for entry in every),
        **stops,
        "truncated": sum(entry.stop_reason in TRUNCATED for entry in alive),
        "malformed_rate": share(sum(step.malformed for step in steps), len(steps)),
        "cut_rate": share(sum(step.cut for step in steps), len(steps)),
        "inadmissible_rate": share(sum(step.inadmissible for step in steps), len(steps)),
        "steps_mean": share(len(steps), len(alive)),
    }


def _success_by_type(alive: Sequence[Trajectory]) -> Row:
    found: Row = {}
    for kind in TASK_TYPES:
        played = [entry.won for entry in alive if entry.task.task_type == kind]
        found[f"success_{kind}"] = share(sum(played), len(played))
    return found


def _keys(trajectory: Trajectory, context: Context) -> Row:
    return {
        "phase": context.phase,
        "update": context.update,
        "split": trajectory.task.split,
        "task_id": trajectory.task.task_id,
        "branch": trajectory.branch,
    }
