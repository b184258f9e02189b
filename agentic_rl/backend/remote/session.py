"""An open session with a training service: who samples, who trains, and what it has cost."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend.hf_tokenizer import HfTokenizer
from agentic_rl.backend.remote.canary import Bounds, Canary
from agentic_rl.backend.remote.datums import batch_gap
from agentic_rl.backend.remote.guard import Guard
from agentic_rl.backend.remote.keeper import Keeper, Origin
from agentic_rl.backend.remote.service import (
    Remedy,
    RemoteDatum,
    RemoteError,
    Reply,
    Sampler,
    Service,
    Settings,
    Tally,
    Trainer,
)
from agentic_rl.training import Adam, Checkpoint
from agentic_rl.types import SamplingParams

Trained = tuple[list[NDArray[np.float64]], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait, and how often to try."""

    timeout: float
    sampling_timeout: float
    sample_retries: int
    keep_state_every: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one step trains on; `on_policy` where the current sampler drew the tokens."""

    data: list[RemoteDatum]
    loss: str
    settings: Settings
    optim: Adam
    on_policy: bool = True


class Session:
    """`fresh` says that the sampler's weights are the trainer's."""

    def __init__(
        self,
        service: Service,
        guard: Guard,
        tokenizer: HfTokenizer,
        base: Sampler,
        limits: Limits,
        bounds: Bounds,
    ) -> None:
        self.service = service
        self.guard = guard
        self.tokenizer = tokenizer
        self.base = base
        self.sampler = base
        self.tally = Tally()
        self._limits = limits
        self._keeper = Keeper(service, guard, limits.timeout)
        self._canary = Canary(bounds, tokenizer, service.name)
        self._run = uuid.uuid4().hex[:8]
        self._fresh = True
        self._updated = False
        self._updates = 0
        self._rebuilds_told = 0

    def rebuilds(self) -> int:
        """How often a trainer was made again since this was last asked."""
        told, self._rebuilds_told = self._rebuilds_told, self._keeper.rebuilt
        return self._keeper.rebuilt - told

    async def ask(
        self, sampler: Sampler, tokens: list[int], n: int, params: SamplingParams
    ) -> Reply:
        """Sampling leaves nothing behind, so that a lost or torn answer is asked for again."""

        async def once() -> Reply:
            reply = await sampler.sample(tokens, n, params)
            _check(reply, n, self.service.name)
            return reply

        for attempt in range(self._limits.sample_retries + 1):
            try:
                reply = await self.guard.call(once, "sampling", self._limits.sampling_timeout)
            except RemoteError as error:
                if error.remedy is not Remedy.REPEAT or attempt == self._limits.sample_retries:
                    raise
                continue
            self.tally.prefill += reply.prefill or len(tokens)
            self.tally.cached += reply.cached
            self.tally.sampled += reply.sampled or sum(len(s.tokens) for s in reply.sequences)
            return reply
        raise AssertionError("at least one attempt is made")

    async def score(self, tokens: Sequence[int]) -> list[float | None]:
        sampler = self.sampler
        values = await self.guard.call(
            lambda: sampler.logprobs(tokens), "scoring tokens", self._limits.sampling_timeout
        )
        self.tally.prefill += len(tokens)
        return values

    async def train(self, lesson: Lesson, doing: str) -> Trained:
        """Gradients of the whole batch, then one step. A new trainer would redo all of it."""
        result = await self._keeper.run(lambda trainer: self._step(trainer, lesson), doing)
        self._fresh = False
        self._updated = True
        return result

    async def renew(self) -> None:
        """The weights as they are now become those that sample."""
        self.sampler = await self._keeper.run(self._handover, "handing the weights to a sampler")
        self._fresh = True
        self._updated = False

    async def save(self, name: str) -> Checkpoint:
        async def keep(trainer: Trainer) -> Checkpoint:
            state = await trainer.save_state(name, temporary=False)
            return Checkpoint(name, state, await trainer.save_weights(name))

        checkpoint = await self._keeper.run(keep, f"saving {name}")
        self._keeper.saved(Origin(checkpoint.state, optimizer=True))
        return checkpoint

    async def load(self, checkpoint: Checkpoint, *, optimizer: bool) -> None:
        """Only the sampler's weights; a trainer is made when one is needed."""
        address = checkpoint.sampler or checkpoint.state
        self.sampler = await self.guard.call(
            lambda: self.service.sampler(address), f"loading {address}", self._limits.timeout
        )
        self._keeper.start_from(Origin(checkpoint.state or checkpoint.sampler, optimizer))
        self._fresh = True
        self._updated = False

    async def _step(self, trainer: Trainer, lesson: Lesson) -> Trained:
        self._fits(trainer, lesson.data)
        logprobs = await trainer.forward(lesson.data, lesson.loss, lesson.settings, backward=True)
        if lesson.on_policy and self._fresh:
            self._canary.check(batch_gap(lesson.data, logprobs), "on the batch just sampled")
        metrics = await trainer.step(lesson.optim)
        self._updates += 1
        every = self._limits.keep_state_every
        if every and self._updates % every == 0:
            name = f"rolling-{self._run}-{self._updates // every % 2}"
            state = await trainer.save_state(name, temporary=True)
            self._keeper.saved(Origin(state, optimizer=True))
        else:
            self._keeper.stepped()
        self.tally.trained += sum(len(datum.tokens) for datum in lesson.data)
        return logprobs, metrics

    async def _handover(self, trainer: Trainer) -> Sampler:
        sampler = await trainer.sampler()
        if self._canary.watches:
            prompt, params = self._canary.prompt, self._canary.params
            told = (await self.ask(sampler, prompt, 1, params)).sequences[0]
            probe = self._canary.probe(told.tokens)
            scored = (await trainer.forward([probe], "cross_entropy", {}, backward=False))[0]
            self.tally.prefill += len(probe.tokens)
            self._canary.compare(told.logprobs, scored, self._updated)
        return sampler

    def _fits(self, trainer: Trainer, data: Sequence[RemoteDatum]) -> None:
        longest = max(len(datum.tokens) for datum in data)
        if trainer.max_tokens is not None and longest > trainer.max_tokens:
            raise RemoteError(
                f"a sequence of {longest} tokens is longer than the {trainer.max_tokens} that"
                f" {self.service.name} trains: lower rollout.max_trajectory_tokens"
            )


def _check(reply: Reply, n: int, service: str) -> None:
    """A reply of the wrong shape passes an SDK as an empty one."""
    found = reply.sequences
    if len(found) != n or not all(s.tokens and len(s.tokens) == len(s.logprobs) for s in found):
        raise RemoteError(
            f"{service} answered {len(found)} of {n} samples, or one without log-probabilities",
            Remedy.REPEAT,
        )
