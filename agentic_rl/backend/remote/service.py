"""A training service in our nouns: an SDK becomes a backend by giving it these verbs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agentic_rl.errors import BackendError
from agentic_rl.training import Adam
from agentic_rl.types import SamplingParams

Settings = dict[str, float]


class Remedy(StrEnum):
    """What can be done about a failed call."""

    REPEAT = "repeat"  # sampling may be asked again: the answer was lost on the way
    REBUILD = "rebuild"  # the trainer may be made again from its last saved state
    REFUSE = "refuse"  # the same request would fail again
    STOP = "stop"  # nothing that is sent from now on can succeed


class RemoteError(BackendError):
    """A failed call, worded for the person at the keyboard."""

    def __init__(self, message: str, remedy: Remedy = Remedy.REFUSE) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.hopeless = remedy is Remedy.STOP


@dataclass(frozen=True, slots=True)
class RemoteDatum:
    """A sequence shifted once: `targets[i]` is the token that follows `tokens[i]`.

    `mask` is 1 where the target was sampled; `advantages` already hold the loss's weights.
    """

    tokens: list[int]
    targets: NDArray[np.int64]
    mask: NDArray[np.float64]
    logprobs: NDArray[np.float64]
    advantages: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampled sequence as the service gave it."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stopped: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to one sampling request; token counts are 0 where the service names none."""

    sequences: list[Sampled]
    prefill: int = 0
    cached: int = 0
    sampled: int = 0


class Sampler(Protocol):
    """Fixed weights that sample."""

    @property
    def max_tokens(self) -> int | None:
        """Longest sequence, prompt and reply together."""
        ...

    async def sample(self, tokens: Sequence[int], n: int, params: SamplingParams) -> Reply: ...

    async def logprobs(self, tokens: Sequence[int]) -> list[float | None]: ...


class Trainer(Protocol):
    """Weights with an optimizer, on one machine of the service."""

    @property
    def max_tokens(self) -> int | None: ...

    async def forward(
        self, data: Sequence[RemoteDatum], loss: str, settings: Settings, *, backward: bool
    ) -> list[NDArray[np.float64]]:
        """Log-probabilities of the targets, one array a datum. `backward` adds up gradients."""
        ...

    async def step(self, optim: Adam) -> dict[str, float]: ...

    async def sampler(self) -> Sampler:
        """The weights as they are now."""
        ...

    async def save_state(self, name: str, *, temporary: bool) -> str:
        """Weights and optimizer, replacing what `name` held; gives the address."""
        ...

    async def save_weights(self, name: str) -> str: ...


class Service(Protocol):
    """A session with the service. What blocks is not a coroutine and is run in a thread."""

    @property
    def name(self) -> str: ...

    def open(self) -> None: ...

    async def trainer(self, state: str, *, optimizer: bool) -> Trainer:
        """From a saved state, or fresh where `state` is empty."""
        ...

    async def sampler(self, address: str) -> Sampler:
        """Saved weights, or the base model's where `address` is empty."""
        ...

    def tokenizer(self) -> Any:
        """A transformers tokenizer; may download it."""
        ...

    def close(self) -> None:
        """Raises where the service did not confirm."""
        ...

    def word(self, error: Exception, doing: str) -> RemoteError: ...


@dataclass(slots=True)
class Tally:
    """Tokens so far."""

    prefill: int = 0
    cached: int = 0
    sampled: int = 0
    trained: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    """A key and where it belongs; the key prints nowhere."""

    key: str = field(repr=False)
    base_url: str | None = None
