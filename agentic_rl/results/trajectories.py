"""The rows of `trajectories.jsonl`: a whole episode, for reading and for replaying."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_rl.errors import RunFolderError
from agentic_rl.results.lines import read_lines
from agentic_rl.results.rows import finite
from agentic_rl.types import Message, Phase, RewardSignal, StateFacts, Step, Trajectory

FILE = "trajectories.jsonl"

_KEYS = {"run_id", "phase", "update", "split", "task_id", "branch", "messages", "steps"}


def trajectory_row(
    trajectory: Trajectory,
    *,
    phase: Phase,
    update: int,
    messages: Sequence[Message],
    signal: RewardSignal | None = None,
    advantages: Sequence[float] | None = None,
) -> dict[str, Any]:
    """The keys of its row in `episodes`, the conversation, and what each step was worth.

    A step's `observation` is what was seen before acting; `final_observation` ends the list.
    """
    task = trajectory.task
    steps = [
        _step(step, number, signal, advantages) for number, step in enumerate(trajectory.steps)
    ]
    final = trajectory.steps[-1].result.observation if trajectory.steps else None
    return {
        "phase": phase,
        "update": update,
        "split": task.split,
        "task_id": task.task_id,
        "branch": trajectory.branch,
        "group_id": trajectory.group_id,
        "task_type": task.task_type,
        "game_digest": task.digest,
        "won": trajectory.won,
        "stop_reason": str(trajectory.stop_reason),
        "error": trajectory.error,
        "return": finite(signal.total) if signal else None,
        "messages": [{"role": entry.role, "content": entry.content} for entry in messages],
        "steps": steps,
        "final_observation": final,
    }


def _step(
    step: Step, number: int, signal: RewardSignal | None, advantages: Sequence[float] | None
) -> dict[str, Any]:
    row = {
        "step": number,
        "observation": step.observation,
        "admissible_actions": list(step.admissible_actions),
        "state": _facts(step.state),
        "reply": step.completion.text,
        "action": step.action,
        "malformed": step.malformed,
        "cut": step.cut,
        "admissible": step.action is not None and step.result.admissible,
        "score": step.result.score,
        "done": step.result.done,
        "reward": signal.task[number] if signal else None,
        "penalty": signal.penalties[number] if signal else None,
        "advantage": advantages[number] if advantages is not None else None,
        "prompt_tokens": step.prompt_end,
        "completion_tokens": len(step.completion.tokens),
    }
    cleaned = finite(row)
    assert isinstance(cleaned, dict)
    return cleaned


def _facts(state: StateFacts | None) -> Mapping[str, Any] | None:
    if state is None:
        return None
    return {
        "digest": state.digest,
        "inventory": list(state.inventory),
        "location": state.location,
    }


def read_trajectories(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows kept, one by one; RunFolderError where the file is not ours."""
    path = folder / FILE
    if not path.is_file():
        return
    try:
        for row in read_lines(path):
            if not row.keys() >= _KEYS:
                raise ValueError(f"{path} holds rows that are no trajectories")
            yield row
    except (OSError, ValueError) as error:
        raise RunFolderError(str(error)) from error
