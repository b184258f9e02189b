"""The embedded backend: a log-linear policy that learns on a CPU in minutes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rl.backend import backends
from agentic_rl.errors import ConfigError
from agentic_rl.interfaces import Loss, Tokenizer
from agentic_rl.training import Adam, Capabilities, Checkpoint, UpdateMetrics, Usage
from agentic_rl.types import Batch, Completion, Demonstration, Prompt, SamplingParams, Span

if TYPE_CHECKING:
    from agentic_rl.backend.linear.learner import Learner

_LOSSES = frozenset({"*"})


@backends.register("linear")
@dataclass(frozen=True)
class LinearBackend:
    """Scores candidate replies by hashed features of what the prompt shows, and samples one.

    No language model: it cannot write what is not a candidate. Everything else is real: tokens,
    exact log-probabilities, the loss and its gradient, Adam, checkpoints. `warm_start` is how many
    walkthroughs a run has it imitate before the first update; 0 starts from scratch.
    """

    default_lr: float = 0.03
    feature_bits: int = 17
    warm_start: int = 6
    imitate_epochs: int = 10
    imitate_lr: float = 0.02
    prices: dict[str, float] | None = None

    def __post_init__(self) -> None:
        if not 10 <= self.feature_bits <= 24:
            raise ConfigError(f"feature_bits={self.feature_bits} is not between 10 and 24")
        if self.warm_start < 0:
            raise ConfigError(f"warm_start={self.warm_start} is below 0")
        if self.imitate_epochs < 1:
            raise ConfigError(f"imitate_epochs={self.imitate_epochs} is below 1")

    @cached_property
    def _learner(self) -> "Learner":
        from agentic_rl.backend.linear.learner import Learner

        return Learner(self.feature_bits)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(losses=_LOSSES, train=True, tokens=True, score=True, imitate=True)

    @property
    def tokenizer(self) -> Tokenizer:
        return self._learner.tokenizer

    @property
    def usage(self) -> Usage:
        return self._learner.usage

    def bind(self, render: Callable[[str], str]) -> None:
        self._learner.bind(render)

    async def start(self) -> None:
        """Nothing to open."""

    async def sample(self, prompt: Prompt, n: int, params: SamplingParams) -> list[Completion]:
        completions = self._learner.sample(prompt.view, n, params)
        sampled = sum(len(completion.tokens) for completion in completions)
        self._learner.usage += Usage(prefill=len(prompt.tokens), sampled=sampled)
        return completions

    async def update(self, batch: Batch, loss: Loss, optim: Adam) -> UpdateMetrics:
        metrics = self._learner.update(batch, loss, optim)
        self._learner.usage += Usage(trained=sum(len(datum.tokens) for datum in batch.data))
        return metrics

    async def refresh(self) -> None:
        """The trained weights are those that sample."""

    async def save(self, folder: Path, name: str) -> Checkpoint:
        from agentic_rl.backend.linear.checkpoint import write

        write(folder, self._learner.weights)
        return Checkpoint(name, state=str(folder), sampler=str(folder))

    async def load(self, checkpoint: Checkpoint, *, optimizer: bool) -> None:
        from agentic_rl.backend.linear.checkpoint import read

        folder = Path(checkpoint.state if optimizer else checkpoint.sampler)
        size = self._learner.table.size
        self._learner.weights = read(folder, size, optimizer=optimizer)

    async def score(self, tokens: Sequence[int], spans: Sequence[Span]) -> list[list[float]]:
        """Of samples it remembers. What surrounds them changes nothing: it reads views."""
        return self._learner.score(tokens, spans)

    async def imitate(self, data: Sequence[Demonstration], optim: Adam) -> UpdateMetrics:
        """`imitate_epochs` steps at `imitate_lr` over all demonstrations; no tokens are counted."""
        settings = replace(optim, lr=self.imitate_lr)
        return self._learner.imitate(data, settings, self.imitate_epochs)

    async def close(self) -> None:
        """Nothing is held."""
