"""The nouns, all frozen. Nested sequences name their axes: `[g][i][t]` is group, branch, step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agentic_rl.hashing import panel_hash

Advantages = Sequence[Sequence[Sequence[float]]]
"""advantages[g][i][t]: one number a step, shaped like the batch it was estimated from."""

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The six types that ALFWorld's text games are published with."""

Role = Literal["system", "user", "assistant", "tool"]
Phase = Literal["train", "evaluation"]


class StopReason(StrEnum):
    """Why a trajectory ended."""

    WON = "won"
    MAX_STEPS = "max_steps"
    MAX_TRAJECTORY_TOKENS = "max_trajectory_tokens"
    ENV_ERROR = "env_error"
    SAMPLE_ERROR = "sample_error"


@dataclass(frozen=True, slots=True)
class Task:
    """One game. `digest` is its file's sha256; `walkthrough` reaches no table and no prompt."""

    task_id: str
    split: str
    task_type: str
    game_file: str
    digest: str
    walkthrough: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class GameSet:
    """The games of one split in sorted order, and how many files were left out, by reason."""

    split: str
    tasks: tuple[Task, ...]
    excluded: Mapping[str, int]

    @property
    def panel_hash(self) -> str:
        return panel_hash((task.task_id, task.digest) for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message; an assistant's content is what was sampled, to the letter."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class View:
    """What the prompt's text shows, and nothing else.

    `pairs` are (observation, action that followed it); None where the reply held no action.
    """

    task: str
    pairs: tuple[tuple[str, str | None], ...]
    observation: str
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a backend answers. `tokens` is empty where the backend takes none.

    `task`, `branch` and `turn` serve seeds and scripted play; they are never sent anywhere.
    """

    tokens: Sequence[int]
    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...]
    view: View
    task: Task
    branch: int
    turn: int


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to sample one turn; `seed` alone decides what a seedable backend answers."""

    temperature: float
    top_p: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled turn; `logprobs[j]` belongs to `tokens[j]`, at the temperature of sampling."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    stop_reason: Literal["stop", "length"]
    sample_id: str = ""


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What the compiled engine knows of a state; in the `steps` table, never in a prompt."""

    digest: str
    inventory: tuple[str, ...]
    location: str


@dataclass(frozen=True, slots=True)
class EnvStep:
    """An environment's answer; the actions are sorted."""

    observation: str
    admissible_actions: tuple[str, ...]
    admissible: bool = True
    score: float = 0.0
    done: bool = False
    won: bool = False
    state: StateFacts | None = None


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """The action of a reply, or None with the reason why there is none."""

    action: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: what was seen, what was answered, what came of it, and where its tokens lie.

    In `segments[segment]` the completion's tokens are `[prompt_end:completion_end]`.
    """

    observation: str
    admissible_actions: tuple[str, ...]
    state: StateFacts | None
    completion: Completion
    action: str | None
    malformed: bool
    cut: bool
    result: EnvStep
    segment: int = 0
    prompt_end: int = 0
    completion_end: int = 0

    @property
    def inadmissible(self) -> bool:
        """An action was read and the environment refused it."""
        return self.action is not None and not self.result.admissible


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode of one game. Tokens are kept once, in `segments` that the steps point into.

    `prefill` and `sampled` are tokens as billed, failed attempts included; a prompt sampled for the
    whole group is billed to branch 0.
    """

    task: Task
    group_id: str
    branch: int
    steps: tuple[Step, ...]
    segments: tuple[tuple[int, ...], ...]
    won: bool
    stop_reason: StopReason
    error: str | None = None
    prefill: int = 0
    sampled: int = 0
    attempts: int = 1
    env_errors: int = 0
    sample_errors: int = 0

    @property
    def failed(self) -> bool:
        """The environment or the sampler failed: no success rate counts this trajectory."""
        return self.error is not None

    @property
    def invalid_actions(self) -> int:
        return sum(step.malformed or step.inadmissible for step in self.steps)


@dataclass(frozen=True, slots=True)
class TrajectoryGroup:
    """The trajectories of one game in one update, in branch order."""

    task: Task
    trajectories: tuple[Trajectory, ...]


@dataclass(frozen=True, slots=True)
class RewardSignal:
    """Per step the task's reward and the penalties (0 or below); the return is the sum of both."""

    task: tuple[float, ...]
    penalties: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.task) != len(self.penalties):
            raise ValueError(f"{len(self.task)} task rewards for {len(self.penalties)} penalties")

    @property
    def total(self) -> float:
        """The undiscounted return."""
        return math.fsum((*self.task, *self.penalties))


@dataclass(frozen=True, slots=True)
class ScoredGroup:
    """A group with its signals. `planned_size` is what it held before failures were dropped;
    `evidence[i][t]` is filled where an estimator needs it."""

    group: TrajectoryGroup
    signals: tuple[RewardSignal, ...]
    planned_size: int
    evidence: tuple[tuple[float, ...], ...] | None = None

    @property
    def returns(self) -> tuple[float, ...]:
        return tuple(signal.total for signal in self.signals)


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `[start:end)` of a Datum that were sampled in one turn."""

    start: int
    end: int
    sample_id: str
    group: int
    branch: int
    step: int


@dataclass(frozen=True, slots=True)
class Datum:
    """One token sequence to train on; all four arrays have the length of `tokens`.

    Outside the sampled tokens mask, log-probability and advantage are 0. Nothing is shifted yet.
    """

    tokens: NDArray[np.int64]
    loss_mask: NDArray[np.float64]
    old_logprobs: NDArray[np.float64]
    advantages: NDArray[np.float64]
    spans: tuple[Span, ...]

    def __post_init__(self) -> None:
        for name in ("loss_mask", "old_logprobs", "advantages"):
            if len(getattr(self, name)) != len(self.tokens):
                raise ValueError(f"{len(getattr(self, name))} {name} for {len(self.tokens)} tokens")


@dataclass(frozen=True, slots=True)
class Batch:
    """What one update trains on, with the counts of the whole logical batch.

    `tokens` and `trajectories` count what was left out as well (its advantages were all zero), so
    that a mean over the batch stays a mean over the batch.
    """

    data: tuple[Datum, ...]
    tokens: int
    trajectories: int


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One turn to imitate: the prompt and the action a good player chose."""

    prompt: Prompt
    action: str
