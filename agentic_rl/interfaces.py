"""What each family's components do. Shapes and duties; the nouns are in `types`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agentic_rl.training import Adam, Capabilities, Checkpoint, UpdateMetrics, Usage
from agentic_rl.types import (
    Advantages,
    Batch,
    Completion,
    Demonstration,
    EnvStep,
    GameSet,
    Message,
    ParsedAction,
    Prompt,
    RewardSignal,
    SamplingParams,
    ScoredGroup,
    Span,
    Step,
    Task,
    Trajectory,
    View,
)

Reduction = Literal["tokens", "trajectories", "constant"]


@runtime_checkable
class Reward(Protocol):
    """A trajectory's signal, one task reward and one penalty a step."""

    def __call__(self, trajectory: Trajectory) -> RewardSignal: ...


@runtime_checkable
class Advantage(Protocol):
    """advantages[g][i][t] for a batch of groups.

    `needs` names what the runner must provide: `state` (engine facts) or `score` (evidence).
    """

    @property
    def needs(self) -> frozenset[str]: ...

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages: ...


@runtime_checkable
class PromptProtocol(Protocol):
    """How a game is put into words and how a reply is read. `parse(render(a)).action == a`."""

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]: ...

    @property
    def keeps_full_history(self) -> bool: ...

    @property
    def template_options(self) -> Mapping[str, Any]:
        """Passed to the chat template, such as `enable_thinking`."""
        ...

    def opening(self, task: Task, observation: str, admissible: Sequence[str]) -> list[Message]:
        """The messages before the first reply."""
        ...

    def reply(self, step: Step, number: int) -> Message:
        """Words `step.result`; `number` counts steps from 1."""
        ...

    def window(
        self, task: Task, steps: Sequence[Step], observation: str, admissible: Sequence[str]
    ) -> list[Message]:
        """The whole prompt of one turn, for a protocol that does not keep the full history."""
        ...

    def view(
        self, task: Task, steps: Sequence[Step], observation: str, admissible: Sequence[str]
    ) -> View:
        """Exactly what the text of this turn shows."""
        ...

    def parse(self, text: str) -> ParsedAction: ...

    def render(self, action: str, reasoning: str = "") -> str: ...


class Env(Protocol):
    """One live episode of one game; it knows no step limit."""

    @property
    def last(self) -> EnvStep:
        """The last result; after `branch()`, that of the state branched from."""
        ...

    async def reset(self) -> EnvStep: ...

    async def step(self, action: str) -> EnvStep:
        """Raises EnvError where the environment itself fails."""
        ...

    async def branch(self) -> "Env":
        """Another episode in this very state."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class EnvPool(Protocol):
    """Opens environments and owns what they share.

    `fallbacks` counts the games that another engine than the one asked for had to play.
    """

    @property
    def fallbacks(self) -> int: ...

    @property
    def gives_state(self) -> bool:
        """Whether its results carry `StateFacts`."""
        ...

    async def open(self, task: Task) -> Env: ...

    async def close(self) -> None: ...


@runtime_checkable
class Games(Protocol):
    """A source of games. `load` raises GamesError where a split holds none."""

    @property
    def splits(self) -> tuple[str, ...]: ...

    def load(self, split: str) -> GameSet: ...


@dataclass(frozen=True, slots=True)
class LossValue:
    """Per token: the loss, its derivative by the log-probability, the ratio, whether it clipped."""

    values: NDArray[np.float64]
    grads: NDArray[np.float64]
    ratios: NDArray[np.float64]
    clipped: NDArray[np.bool_]


@runtime_checkable
class Loss(Protocol):
    """A token-level policy loss; `reduction` says what its sum over the batch is divided by."""

    @property
    def name(self) -> str: ...

    @property
    def reduction(self) -> str:
        """One of `Reduction`."""
        ...

    def value_and_grad(
        self,
        logprobs: NDArray[np.float64],
        old_logprobs: NDArray[np.float64],
        advantages: NDArray[np.float64],
    ) -> LossValue: ...

    def token_weights(self, batch: Batch) -> list[NDArray[np.float64]]:
        """One array a Datum, to multiply the token losses by; it is 0 outside the mask."""
        ...

    def remote(self) -> tuple[str, dict[str, float]]:
        """The name and the settings by which a training service knows this loss."""
        ...


class Tokenizer(Protocol):
    """A tokenizer with its chat template. `render` gives text, `encode` adds no special tokens."""

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        options: Mapping[str, Any],
    ) -> str: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


class Backend(Protocol):
    """A policy: samples, and where it can, learns."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def tokenizer(self) -> Tokenizer | None: ...

    @property
    def usage(self) -> Usage: ...

    def bind(self, render: Callable[[str], str]) -> None:
        """Called once, before anything else: how the protocol words an action."""
        ...

    async def start(self) -> None:
        """Opens what costs time or money; raises BackendError with what to type."""
        ...

    async def sample(self, prompt: Prompt, n: int, params: SamplingParams) -> list[Completion]: ...

    async def update(self, batch: Batch, loss: Loss, optim: Adam) -> UpdateMetrics: ...

    async def refresh(self) -> None:
        """Makes the trained weights those that sample."""
        ...

    async def save(self, folder: Path, name: str) -> Checkpoint:
        """Into `folder`, which exists and is empty, or with the service under `name`."""
        ...

    async def load(self, checkpoint: Checkpoint, *, optimizer: bool) -> None: ...

    async def score(self, tokens: Sequence[int], spans: Sequence[Span]) -> list[list[float]]:
        """Log-probabilities of the tokens in each span."""
        ...

    async def imitate(self, data: Sequence[Demonstration], optim: Adam) -> UpdateMetrics: ...

    async def close(self) -> None: ...


class Tracker(Protocol):
    """A mirror of the metrics: it may lose them, but never stops or blocks a run."""

    def start(self, run_id: str, folder: Path, config: Mapping[str, Any]) -> None: ...

    def log(self, metrics: Mapping[str, float], update: int) -> None: ...

    def finish(self, status: str) -> None: ...
