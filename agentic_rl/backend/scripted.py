"""A policy that follows a script: random actions, or each game's walkthrough. It never learns."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from agentic_rl.backend import backends
from agentic_rl.errors import BackendError, ConfigError, did_you_mean
from agentic_rl.interfaces import Loss, Tokenizer
from agentic_rl.training import Adam, Capabilities, Checkpoint, UpdateMetrics, Usage
from agentic_rl.types import Batch, Completion, Demonstration, Prompt, SamplingParams, Span

POLICIES = ("random", "walkthrough")


@dataclass
class _Voice:
    """How the protocol words an action, once it has said so."""

    render: Callable[[str], str] | None = None

    def say(self, action: str) -> str:
        if self.render is None:
            raise RuntimeError("bind(render) comes before the first sample")
        return self.render(action)


@backends.register("scripted")
@dataclass(frozen=True)
class Scripted:
    """`random` chooses evenly among the listed actions; `walkthrough` plays the game's solution.

    It has no tokens: prompts, completions and its usage hold none.
    """

    policy: str = "random"
    default_lr: float = 0.0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            near = did_you_mean(self.policy, POLICIES)
            raise ConfigError(f"policy={self.policy} is not one of {', '.join(POLICIES)}.{near}")

    @cached_property
    def _voice(self) -> _Voice:
        return _Voice()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def tokenizer(self) -> Tokenizer | None:
        return None

    @property
    def usage(self) -> Usage:
        return Usage()

    def bind(self, render: Callable[[str], str]) -> None:
        self._voice.render = render

    async def start(self) -> None:
        """Nothing to open."""

    async def sample(self, prompt: Prompt, n: int, params: SamplingParams) -> list[Completion]:
        choose = self._follow if self.policy == "walkthrough" else self._guess
        actions = [choose(prompt, params, index) for index in range(n)]
        return [Completion((), (), self._voice.say(action), "stop") for action in actions]

    async def update(self, batch: Batch, loss: Loss, optim: Adam) -> UpdateMetrics:
        self._refuse("learn")

    async def refresh(self) -> None:
        """There are no weights."""

    async def save(self, folder: Path, name: str) -> Checkpoint:
        self._refuse("be saved")

    async def load(self, checkpoint: Checkpoint, *, optimizer: bool) -> None:
        self._refuse("load a checkpoint")

    async def score(self, tokens: Sequence[int], spans: Sequence[Span]) -> list[list[float]]:
        self._refuse("score tokens")

    async def imitate(self, data: Sequence[Demonstration], optim: Adam) -> UpdateMetrics:
        self._refuse("imitate")

    async def close(self) -> None:
        """Nothing is held."""

    def _guess(self, prompt: Prompt, params: SamplingParams, index: int) -> str:
        actions = prompt.view.actions or ("look",)
        return random.Random(f"{params.seed}/{index}").choice(actions)

    def _follow(self, prompt: Prompt, params: SamplingParams, index: int) -> str:
        solution = prompt.task.walkthrough
        if prompt.turn >= len(solution):
            raise BackendError(
                f"{prompt.task.task_id} has a walkthrough of {len(solution)} commands, none for"
                f" turn {prompt.turn + 1}: use backend.policy=random"
            )
        return solution[prompt.turn]

    def _refuse(self, what: str) -> NoReturn:
        raise BackendError(f"backend 'scripted' cannot {what}: use backend=linear")
