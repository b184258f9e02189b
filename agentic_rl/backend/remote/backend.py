"""The backend of a training service; an SDK's module adds the fields and the verbs."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agentic_rl.backend.hf_tokenizer import HfTokenizer
from agentic_rl.backend.remote.canary import Bounds
from agentic_rl.backend.remote.datums import Divisor, measure, remote_batch
from agentic_rl.backend.remote.guard import Guard, in_thread
from agentic_rl.backend.remote.service import RemoteDatum, RemoteError, Service, Tally
from agentic_rl.backend.remote.session import Lesson, Limits, Session
from agentic_rl.errors import BackendError, did_you_mean
from agentic_rl.interfaces import Loss, Tokenizer
from agentic_rl.training import Adam, Capabilities, Checkpoint, UpdateMetrics, Usage
from agentic_rl.types import Batch, Completion, Demonstration, Prompt, SamplingParams, Span

log = logging.getLogger(__name__)

CLOSING_SECONDS = 3.0
"""Longest wait for the service to confirm that a session is closed."""

_PRICES = ("prefill", "cached", "sampled", "trained")


@dataclass
class RemoteBackend:
    """Fields that every training service has. Live state is made in `start`, never a field."""

    model: str = ""
    lora_rank: int = 32
    train_mlp: bool = True
    train_attn: bool = True
    train_unembed: bool = True
    seed: int | None = None
    base_url: str | None = None
    default_lr: float = 1e-6
    timeout: float = 1800.0
    sampling_timeout: float = 300.0
    sample_retries: int = 2
    keep_state_every: int = 1
    canary_tokens: int = 16
    canary_mean_gap: float = 0.1
    canary_largest_gap: float = 0.0
    canary_unchanged: int = 3
    prices: dict[str, float] | None = None

    def __post_init__(self) -> None:
        self._session: Session | None = None
        self._spent = Tally()
        self._above_zero("timeout", "sampling_timeout")
        for key in self.prices or ():
            if key not in _PRICES:
                raise BackendError(
                    f"prices has no '{key}'.{did_you_mean(key, _PRICES)}"
                    f" Keys: {', '.join(_PRICES)}."
                )

    def _above_zero(self, *keys: str) -> None:
        for key in keys:
            if not getattr(self, key) > 0:
                raise BackendError(f"{key}={getattr(self, key)} is not above 0")

    def _connect(self) -> Service:
        """Checks package and key, reads no model, opens nothing."""
        raise NotImplementedError

    @property
    def _losses(self) -> frozenset[str]:
        raise NotImplementedError

    @property
    def _divisor(self) -> Divisor:
        raise NotImplementedError

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            losses=self._losses,
            train=True,
            tokens=True,
            score=True,
            imitate=True,
            top_p=True,
            remote=True,
            max_sequence_tokens=self._session.base.max_tokens if self._session else None,
        )

    @property
    def tokenizer(self) -> Tokenizer | None:
        return self._session.tokenizer if self._session else None

    @property
    def usage(self) -> Usage:
        tally = self._session.tally if self._session else self._spent
        return Usage(tally.prefill, tally.cached, tally.sampled, tally.trained)

    def bind(self, render: Callable[[str], str]) -> None:
        """Raises BackendError where no key is to be found: before any game is loaded."""
        self._render = render
        self._connect()

    async def start(self) -> None:
        if self._session is not None:
            return
        service = self._connect()
        guard = Guard(service)
        try:
            await guard.call(lambda: in_thread(service.open), "opening a session", self.timeout)
            base = await guard.call(
                lambda: service.sampler(""), f"opening {self.model}", self.timeout
            )
            inner = await guard.call(
                lambda: in_thread(service.tokenizer), "loading the tokenizer", self.timeout
            )
            self._session = Session(
                service, guard, HfTokenizer(inner), base, self._limits, self._bounds
            )
        except BaseException:
            await _close(service)
            raise

    @property
    def _limits(self) -> Limits:
        return Limits(
            self.timeout, self.sampling_timeout, self.sample_retries, self.keep_state_every
        )

    @property
    def _bounds(self) -> Bounds:
        return Bounds(
            self.canary_mean_gap, self.canary_largest_gap, self.canary_tokens, self.canary_unchanged
        )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._spent = session.tally
            await _close(session.service)

    async def sample(self, prompt: Prompt, n: int, params: SamplingParams) -> list[Completion]:
        session = self._open
        tokens = list(prompt.tokens)
        most = session.sampler.max_tokens
        if most is not None and len(tokens) + params.max_tokens > most:
            if len(tokens) >= most:
                raise RemoteError(
                    f"a prompt of {len(tokens)} tokens leaves no room in {self.model}'s {most}:"
                    f" set rollout.max_trajectory_tokens={most} or less"
                )
            params = replace(params, max_tokens=most - len(tokens))
        reply = await session.ask(session.sampler, tokens, n, params)
        return [
            Completion(
                tokens=sequence.tokens,
                logprobs=sequence.logprobs,
                text=session.tokenizer.text_of(sequence.tokens),
                stop_reason="stop" if sequence.stopped else "length",
            )
            for sequence in reply.sequences
        ]

    async def update(self, batch: Batch, loss: Loss, optim: Adam) -> UpdateMetrics:
        session = self._open
        name, settings = loss.remote()
        if name not in self._losses:
            known = ", ".join(sorted(self._losses))
            raise BackendError(
                f"{session.service.name} has no loss '{name}'.{did_you_mean(name, self._losses)}"
                f" It has: {known}."
            )
        if not batch.data:
            return UpdateMetrics()
        data = remote_batch(batch, loss, self._divisor)
        lesson = Lesson(data, name, settings, optim)
        logprobs, step = await session.train(lesson, "an update")
        return replace(
            measure(batch, logprobs, loss),
            grad_norm=step.get("grad_norm"),
            trainer_rebuilt=session.rebuilds(),
        )

    async def imitate(self, data: Sequence[Demonstration], optim: Adam) -> UpdateMetrics:
        session = self._open
        end = [] if session.tokenizer.end is None else [session.tokenizer.end]
        shown: list[RemoteDatum] = []
        for demonstration in data:
            prompt = list(demonstration.prompt.tokens)
            answer = session.tokenizer.encode(self._render(demonstration.action)) + end
            tokens = [*prompt, *answer]
            mask = np.zeros(len(tokens) - 1)
            mask[len(prompt) - 1 :] = 1.0
            targets = np.asarray(tokens[1:], np.int64)
            shown.append(RemoteDatum(tokens[:-1], targets, mask, np.zeros_like(mask), mask))
        if not shown:
            return UpdateMetrics()
        lesson = Lesson(shown, "cross_entropy", {}, optim, on_policy=False)
        logprobs, step = await session.train(lesson, "imitation")
        learned = np.concatenate([v[d.mask > 0] for d, v in zip(shown, logprobs, strict=True)])
        return UpdateMetrics(loss=-float(learned.mean()), grad_norm=step.get("grad_norm"))

    async def refresh(self) -> None:
        await self._open.renew()

    async def save(self, folder: Path, name: str) -> Checkpoint:
        """The service keeps the weights; `folder` stays empty."""
        return await self._open.save(name)

    async def load(self, checkpoint: Checkpoint, *, optimizer: bool) -> None:
        await self._open.load(checkpoint, optimizer=optimizer)

    async def score(self, tokens: Sequence[int], spans: Sequence[Span]) -> list[list[float]]:
        session = self._open
        values = await session.score(tokens)
        scores: list[list[float]] = []
        for span in spans:
            part = values[span.start : span.end]
            known = [value for value in part if value is not None]
            if len(known) != span.end - span.start:
                raise RemoteError(
                    f"{session.service.name} scored {len(known)} of {len(part)} tokens"
                )
            scores.append(known)
        return scores

    @property
    def _open(self) -> Session:
        if self._session is None:
            raise BackendError("the backend is not started, or already closed")
        return self._session


async def _close(service: Service) -> None:
    """Within seconds, even where the service is gone; never raises what the service says."""
    guard = Guard(service)
    try:
        await guard.call(lambda: in_thread(service.close), "closing the session", CLOSING_SECONDS)
    except BackendError as error:
        log.warning("%s did not confirm that its session is closed: %s", service.name, error)
