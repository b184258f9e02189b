"""What the framework costs beside the sampler, and a plain loop for comparison.

(a) framework time a turn: one trajectory at a time, instant environment and sampler, full history;
(b) wall time over the critical path: 64 trajectories under log-normal latencies.
Both also for a loop that goes round by round and renders everything anew: `python
benchmarks/rollout.py [--turns 50] [--repeats 20] [--scale 1.0]`. With `--scale 0.1` the latencies
are a tenth, which makes the framework's share ten times larger.
"""

import argparse
import asyncio
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import agentic_rl.backend
from agentic_rl.backend.tokenizer import ChatTokenizer
from agentic_rl.config import RolloutConfig
from agentic_rl.protocol.tool_call import ToolCall
from agentic_rl.rollout import Collector, GroupPlan, Sampling
from agentic_rl.training import Capabilities, Usage
from agentic_rl.types import Completion, EnvStep, Message, Prompt, SamplingParams, Step, Task

SHIPPED = Path(agentic_rl.backend.__file__).parent / "linear_tokenizer"
SAMPLING = Sampling("train", 1, 0, 1.0, 1.0)
SIGMAS = (0.3, 0.6, 0.9)
MEDIAN = 0.5
TRAJECTORIES = 64
_PLACES = [f"{name} {n}" for name in ("cabinet", "drawer", "countertop") for n in range(1, 11)]
_ACTIONS = tuple(sorted([f"go to {place}" for place in _PLACES] + ["inventory", "look"]))

Latency = Callable[[int, int], float]


def _observation(turn: int) -> str:
    return (
        f"You arrive at countertop {turn}. On the countertop {turn}, you see a apple 1, a bread 2,"
        " a butterknife 1, a creditcard 3, a mug 2, a saltshaker 1, and a tomato 2."
    )


_START = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around"
    f" you, you see {', '.join(f'a {place}' for place in _PLACES)}.\n\n"
    "Your task is to: put a clean mug in cabinet."
)


@dataclass(eq=False)
class World:
    """Answers at once, with texts of an ordinary length; nobody ever wins."""

    turn: int = 0
    fallbacks: int = 0
    last: EnvStep = field(default_factory=lambda: EnvStep(_START, _ACTIONS))

    async def open(self, task: Task) -> "World":
        return World()

    async def reset(self) -> EnvStep:
        return self.last

    async def step(self, action: str) -> EnvStep:
        self.turn += 1
        self.last = EnvStep(_observation(self.turn), _ACTIONS)
        return self.last

    async def branch(self) -> "World":
        return World(self.turn)

    async def close(self) -> None:
        """Nothing is held."""


class Sampler:
    """Says the same after `latency(branch, turn)` seconds, and notes when it was asked."""

    def __init__(self, latency: Latency | None = None) -> None:
        self.tokenizer = ChatTokenizer.from_folder(SHIPPED)
        self.protocol = ToolCall()
        text = self.protocol.render("go to cabinet 4")
        tokens = tuple(self.tokenizer.encode(f"{text}<|im_end|>"))
        self.completion = Completion(tokens, (-0.5,) * len(tokens), text, "stop")
        self.capabilities = Capabilities(tokens=True)
        self.usage = Usage()
        self.asked: list[float] = []
        self._latency = latency

    async def sample(self, prompt: Prompt, n: int, params: SamplingParams) -> list[Completion]:
        self.asked.append(time.perf_counter())
        if self._latency is not None:
            await asyncio.sleep(self._latency(prompt.branch, prompt.turn))
        return [self.completion] * n


def _plan(number: int) -> GroupPlan:
    task = Task(f"game-{number}", "train", "pick", "", "")
    return GroupPlan(task, f"1-{number}", (number,))


def _settings(turns: int) -> RolloutConfig:
    return RolloutConfig(max_steps=turns, max_trajectory_tokens=10**6, concurrency=TRAJECTORIES)


async def ours(sampler: Sampler, trajectories: int, turns: int) -> None:
    collector = Collector(World(), sampler.protocol, sampler, _settings(turns))  # type: ignore[arg-type]
    plans = [_plan(number) for number in range(trajectories)]
    started = time.perf_counter()
    await collector.collect(plans, SAMPLING)
    sampler.asked.append(time.perf_counter())
    assert started <= sampler.asked[0]


async def plain(sampler: Sampler, trajectories: int, turns: int) -> None:
    """Round by round: every chat rendered and encoded whole, three times a turn; then all wait.

    Three times: for the prompt, to find where the reply's tokens lie, and for the length check.
    """
    protocol, tokenizer = sampler.protocol, sampler.tokenizer
    worlds = [World() for _ in range(trajectories)]
    tasks = [_plan(number).task for number in range(trajectories)]
    steps: list[list[Step]] = [[] for _ in worlds]
    chats = [protocol.opening(tasks[0], _START, _ACTIONS) for _ in worlds]

    def encoded(chat: Sequence[Message], more: bool) -> list[int]:
        return tokenizer.encode(
            tokenizer.render(chat, protocol.tools, more, protocol.template_options)
        )

    async def one(number: int, turn: int) -> None:
        world, chat = worlds[number], chats[number]
        tokens = encoded(chat, True)
        before = world.last
        view = protocol.view(tasks[number], steps[number], before.observation, _ACTIONS)
        prompt = Prompt(tokens, (), protocol.tools, view, tasks[number], number, turn)
        params = SAMPLING.params(tasks[number], number, turn, 2048)
        (said,) = await sampler.sample(prompt, 1, params)
        chat.append(Message("assistant", said.text))
        encoded(chat, False)
        action = protocol.parse(said.text).action or ""
        result = await world.step(action)
        step = Step(before.observation, _ACTIONS, None, said, action, False, False, result)
        steps[number].append(step)
        chat.append(protocol.reply(step, turn + 1))
        encoded(chat, True)

    for turn in range(turns):
        await asyncio.gather(*(one(number, turn) for number in range(trajectories)))
    sampler.asked.append(time.perf_counter())


def turn_times(loop: Callable[..., object], turns: int, repeats: int) -> list[float]:
    """Milliseconds of each turn, from one request to the next; the median over the repeats."""
    rows = []
    for _ in range(repeats):
        sampler = Sampler()
        asyncio.run(loop(sampler, 1, turns))  # type: ignore[arg-type]
        rows.append([1e3 * (b - a) for a, b in zip(sampler.asked, sampler.asked[1:], strict=False)])
    return [statistics.median(row[turn] for row in rows) for turn in range(turns)]


def encoding_time(repeats: int = 200) -> tuple[float, int]:
    """Milliseconds and characters of one reply's encoding."""
    sampler = Sampler()
    codec = Collector(World(), sampler.protocol, sampler, _settings(1)).codec  # type: ignore[arg-type]
    assert codec is not None
    result = EnvStep(_observation(7), _ACTIONS)
    said = sampler.completion
    step = Step(_START, _ACTIONS, None, said, "go to cabinet 4", False, False, result)
    reply = sampler.protocol.reply(step, 7)
    spans = []
    for _ in range(repeats):
        started = time.perf_counter()
        codec.encode_reply(said, reply)
        spans.append(time.perf_counter() - started)
    return 1e3 * statistics.median(spans), len(reply.content)


def latencies(sigma: float, scale: float, turns: int) -> list[list[float]]:
    rng = random.Random(f"latency/{sigma}")
    return [
        [scale * MEDIAN * math.exp(rng.gauss(0, sigma)) for _ in range(turns)]
        for _ in range(TRAJECTORIES)
    ]


def wall_over_critical(
    loop: Callable[..., object], sigma: float, scale: float, turns: int
) -> float:
    """1 is a loop that costs nothing and waits for nobody."""
    table = latencies(sigma, scale, turns)
    sampler = Sampler(lambda branch, turn: table[branch][turn])
    started = time.perf_counter()
    asyncio.run(loop(sampler, TRAJECTORIES, turns))  # type: ignore[arg-type]
    return (time.perf_counter() - started) / max(map(sum, table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", choices=("a", "b"), default=None)
    options = parser.parse_args()
    if options.only != "b":
        report_turns(options.turns, options.repeats)
    if options.only != "a":
        report_walls(options.turns, options.scale)


def report_turns(turns: int, repeats: int) -> None:
    encoding, characters = encoding_time()
    print(f"(a) ms a turn, {turns} turns, instant environment and sampler, median of {repeats}")
    print(f"    encoding one reply of {characters} characters: {encoding:.3f}")
    means = []
    for name, loop, times in (("ours", ours, repeats), ("plain", plain, max(1, repeats // 10))):
        row = turn_times(loop, turns, times)
        means.append(statistics.fmean(row))
        marks = [number for number in (5, 10, 20, 30, 40, 50) if number <= turns]
        # One turn alone is noisy: each mark is the mean of the five turns around it.
        near = {n: statistics.fmean(row[max(0, n - 3) : n + 2]) for n in marks}
        shown = "  ".join(f"{n}: {value:.3f}" for n, value in near.items())
        ratio = near[marks[-1]] / near[5]
        print(f"    {name:5}  mean {means[-1]:.3f}  turn {shown}  last over 5th {ratio:.2f}")
    print(f"    plain over ours: {means[1] / means[0]:.1f}")


def report_walls(turns: int, scale: float) -> None:
    print(f"(b) wall over critical path, {TRAJECTORIES} trajectories of {turns} turns,")
    print(f"    log-normal latencies of median {scale * MEDIAN:g} s")
    for sigma in SIGMAS:
        ratios = [wall_over_critical(loop, sigma, scale, turns) for loop in (ours, plain)]
        print(f"    sigma {sigma}: ours {ratios[0]:.3f}  plain {ratios[1]:.2f}")


if __name__ == "__main__":
    main()
