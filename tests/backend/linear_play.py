"""Plays toy games with the embedded backend, turn by turn, into datums."""

import asyncio
from collections.abc import Sequence

import numpy as np

from agentic_rl.backend.linear import LinearBackend
from agentic_rl.env.toy import ToyEnv, ToyGame
from agentic_rl.protocol.tool_call import ToolCall
from agentic_rl.types import (
    Batch,
    Completion,
    Datum,
    Prompt,
    SamplingParams,
    Span,
    Step,
    Task,
    View,
)

PROTOCOL = ToolCall()
VIEW = View(
    "put a clean apple in fridge.",
    (("You are in the middle of a room.", "go to desk 1"),),
    "You arrive at desk 1. On the desk 1, you see a apple 1, and a mug 2.",
    (
        "go to fridge 1",
        "go to sinkbasin 1",
        "look",
        "take apple 1 from desk 1",
        "take mug 2 from desk 1",
    ),
)


def backend(**fields: object) -> LinearBackend:
    made = LinearBackend(**fields)  # type: ignore[arg-type]
    made.bind(PROTOCOL.render)
    return made


def prompt_of(view: View, tokens: Sequence[int] = (1, 2, 3), turn: int = 0) -> Prompt:
    task = Task("toy", "train", "toy", "", "d", walkthrough=("secret 1",))
    return Prompt(tuple(tokens), (), PROTOCOL.tools, view, task, 0, turn)


def params(seed: int = 0, temperature: float = 1.0, max_tokens: int = 2048) -> SamplingParams:
    return SamplingParams(temperature, 1.0, max_tokens, seed)


def sample(
    policy: LinearBackend, view: View = VIEW, n: int = 1, **fields: object
) -> list[Completion]:
    return asyncio.run(policy.sample(prompt_of(view), n, params(**fields)))  # type: ignore[arg-type]


def datum_of(completions: Sequence[Completion], advantages: Sequence[float]) -> Datum:
    """One Datum: two prompt tokens before each completion, one advantage a completion."""
    tokens: list[int] = []
    mask: list[float] = []
    old: list[float] = []
    credit: list[float] = []
    spans = []
    for step, (completion, advantage) in enumerate(zip(completions, advantages, strict=True)):
        size = len(completion.tokens)
        spans.append(
            Span(len(tokens) + 2, len(tokens) + 2 + size, completion.sample_id, 0, 0, step)
        )
        tokens += [1, 2, *completion.tokens]
        mask += [0.0, 0.0, *[1.0] * size]
        old += [0.0, 0.0, *completion.logprobs]
        credit += [0.0, 0.0, *[advantage] * size]
    arrays = (np.array(mask), np.array(old), np.array(credit))
    return Datum(np.array(tokens), *arrays, tuple(spans))


def batch_of(data: Sequence[Datum]) -> Batch:
    return Batch(tuple(data), int(sum(d.loss_mask.sum() for d in data)), len(data))


async def _episode(
    policy: LinearBackend, game: str, seed: int, limit: int = 12
) -> tuple[list[Completion], bool]:
    env = ToyEnv(ToyGame.of(game))
    steps: list[Step] = []
    task = Task(game, "train", "toy", "", "d")
    now = await env.reset()
    while len(steps) < limit and not now.done:
        view = PROTOCOL.view(task, steps, now.observation, now.admissible_actions)
        [said] = await policy.sample(prompt_of(view), 1, params(1000 * seed + len(steps)))
        action = PROTOCOL.parse(said.text).action
        after = now if action is None else await env.step(action)
        before = (now.observation, now.admissible_actions, None)
        steps.append(Step(*before, said, action, action is None, False, after))
        now = after
    return [step.completion for step in steps], now.won


def episode(policy: LinearBackend, game: str, seed: int) -> tuple[list[Completion], bool]:
    """One toy episode, and whether it was won."""
    return asyncio.run(_episode(policy, game, seed))


def wins(policy: LinearBackend, games: Sequence[str]) -> int:
    """How many of the games are won, by seeds that no training uses."""
    return sum(episode(policy, game, 10**6 + n)[1] for n, game in enumerate(games))


def played(policy: LinearBackend, games: Sequence[str], update: int) -> list[Datum]:
    """One datum a game; each episode's advantage is what it won above the mean."""
    episodes = [episode(policy, game, 100 * update + n) for n, game in enumerate(games)]
    mean = sum(won for _, won in episodes) / len(episodes)
    return [datum_of(turns, [won - mean] * len(turns)) for turns, won in episodes]
