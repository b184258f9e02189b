"""Drives the backend without a runner: one prompt, a reward, a batch."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from agentic_rl.backend import backends
from agentic_rl.backend.pytrio import PytrioBackend
from agentic_rl.backend.remote.backend import RemoteBackend
from agentic_rl.loss import losses
from agentic_rl.protocol import protocols
from agentic_rl.training import Adam, UpdateMetrics
from agentic_rl.types import (
    Batch,
    Completion,
    Datum,
    Message,
    Prompt,
    SamplingParams,
    Span,
    Task,
    View,
)

T = TypeVar("T")
B = TypeVar("B", bound=RemoteBackend)

TASK = Task("a", "train", "x", "f", "d")
ADAM = Adam(0.1, eps=1e-8)
TEXT = (
    "Task: put a mug in desk 1.\nAvailable actions (copy one exactly):\n"
    "- go to desk 1\n- look\n- open drawer 1"
)
FAST = {"retry_seconds": 1.0, "timeout": 20.0, "sampling_timeout": 10.0}


def backend(url: str, **fields: Any) -> PytrioBackend:
    made = backends.build({"name": "pytrio", "base_url": url, **FAST, **fields})
    assert isinstance(made, PytrioBackend)
    made.bind(protocols.build({"name": "tool_call"}).render)
    return made


def drive(made: B, play: Callable[[B], Awaitable[T]]) -> T:
    """Starts, plays and closes, whatever happens."""

    async def main() -> T:
        try:
            await made.start()
            return await play(made)
        finally:
            await made.close()

    return asyncio.run(main())


def prompt(made: RemoteBackend, text: str = TEXT) -> Prompt:
    assert made.tokenizer is not None
    rendered = made.tokenizer.render([Message("user", text)], (), True, {"enable_thinking": False})
    return Prompt(made.tokenizer.encode(rendered), (), (), View("", (), "", ()), TASK, 0, 0)


async def sample(made: RemoteBackend, n: int = 8, seed: int = 0) -> list[Completion]:
    return await made.sample(prompt(made), n, SamplingParams(1.0, 1.0, 60, seed))


def rewards(completions: Sequence[Completion]) -> np.ndarray:
    """1 for a call that goes to the desk."""
    return np.array([1.0 if "go to desk 1" in c.text else 0.0 for c in completions])


def batch(made: RemoteBackend, completions: Sequence[Completion]) -> Batch:
    head = prompt(made).tokens
    values = rewards(completions) - rewards(completions).mean() + 0.01
    data = []
    for completion, value in zip(completions, values, strict=True):
        start, end = len(head), len(head) + len(completion.tokens)
        mask, logprobs, advantages = np.zeros(end), np.zeros(end), np.zeros(end)
        mask[start:], logprobs[start:], advantages[start:] = 1.0, completion.logprobs, value
        tokens = np.array([*head, *completion.tokens])
        data.append(Datum(tokens, mask, logprobs, advantages, (Span(start, end, "", 0, 0, 0),)))
    return Batch(tuple(data), sum(len(c.tokens) for c in completions), len(completions))


async def update(made: RemoteBackend, seed: int = 0, **loss: Any) -> UpdateMetrics:
    """One round: sample, train, hand over."""
    completions = await sample(made, seed=seed)
    spec = {"name": "ppo", **loss}
    metrics = await made.update(batch(made, completions), losses.build(spec), ADAM)
    await made.refresh()
    return metrics


async def scores(made: RemoteBackend) -> list[float]:
    """How the sampling weights judge a fixed answer: equal weights give equal scores."""
    assert made.tokenizer is not None
    head = list(prompt(made).tokens)
    tail = made.tokenizer.encode("<tool_call>\n<function=alfworld_step>\n<parameter=action>\nlook")
    return (
        await made.score([*head, *tail], [Span(len(head), len(head) + len(tail), "", 0, 0, 0)])
    )[0]


def nowhere() -> Path:
    """The folder that `save` leaves empty."""
    return Path("/nonexistent")
