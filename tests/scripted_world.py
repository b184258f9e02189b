"""A sampler and environments that fail, stall and answer in any order, as a schedule says."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rl.backend.tokenizer import ChatTokenizer
from agentic_rl.config import RolloutConfig
from agentic_rl.env.toy import ToyEnv, ToyGame
from agentic_rl.errors import BackendError, EnvError
from agentic_rl.hashing import stable_hash
from agentic_rl.interfaces import PromptProtocol
from agentic_rl.protocol.tool_call import ToolCall
from agentic_rl.rollout import Collector, GroupPlan, Sampling
from agentic_rl.training import Capabilities, Usage
from agentic_rl.types import Completion, Prompt, SamplingParams, Task, TrajectoryGroup
from tests.hostile_tokenizers import GROWING, chat

SAMPLING = Sampling("train", 1, 0, 1.0, 1.0)
Delay = Callable[[], float]
SAMPLE_FAULTS = (
    "raises",
    "times_out",
    "too_few",
    "too_many",
    "wrong_lengths",
    "not_a_number",
    "too_long",
    "gives_up",
    "answers_nothing",
)
ENV_FAULTS = ("step_raises", "step_times_out", "open_raises", "branch_raises", "close_raises")


def plan(number: int, branches: int, boxes: int = 3) -> GroupPlan:
    task_id = f"toy-find-{boxes}-{number}"
    task = Task(task_id, "train", "toy_find", "", "digest")
    return GroupPlan(task, f"1-{number}", tuple(range(branches)))


def no_delay() -> float:
    return 0.0


@dataclass
class ScriptedSampler:
    """Picks a listed action, no action, or half a reply, by the seed alone.

    `faults` maps (task id, branch, turn) to what happens, once each, or every time if `stubborn`.
    """

    faults: dict[tuple[str, int, int], str] = field(default_factory=dict)
    stubborn: bool = False
    delay: Delay = no_delay
    template: str = "chatml"
    spent: Usage = field(default_factory=Usage)
    running: int = 0
    most_running: int = 0
    requests: list[tuple[str, int, int, int]] = field(default_factory=list)
    prompts: dict[tuple[str, int, int], list[int]] = field(default_factory=dict)
    protocol: PromptProtocol = field(default_factory=ToolCall)

    @property
    def tokenizer(self) -> ChatTokenizer:
        return chat("bytes", GROWING[self.template])

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(tokens=True)

    @property
    def usage(self) -> Usage:
        return self.spent

    async def sample(self, prompt: Prompt, n: int, params: SamplingParams) -> list[Completion]:
        key = (prompt.task.task_id, prompt.branch, prompt.turn)
        fault = self.faults.get(key) if self.stubborn else self.faults.pop(key, None)
        self.requests.append((*key, n))
        self.prompts[key] = list(prompt.tokens)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.delay())
            await self._fail_before(fault)
            given = [self._answer(prompt, params, number) for number in range(n)]
            given = _spoil(given, fault, params)
            sampled = sum(len(completion.tokens) for completion in given)
            self.spent += Usage(prefill=len(prompt.tokens), sampled=sampled)
            return given
        finally:
            self.running -= 1

    async def _fail_before(self, fault: str | None) -> None:
        if fault == "raises":
            raise BackendError("the service is away")
        if fault == "times_out":
            raise TimeoutError("too slow")
        if fault == "gives_up":
            raise asyncio.CancelledError
        if fault == "answers_nothing":
            await asyncio.Event().wait()

    def _answer(self, prompt: Prompt, params: SamplingParams, number: int) -> Completion:
        draw = stable_hash(params.seed, number)
        actions = prompt.view.actions
        text = self.protocol.render(actions[draw % len(actions)])
        if draw % 11 == 0:
            text = "I would rather not."
        tokens = self.tokenizer.encode(f"{text}<|im_end|>")
        if len(tokens) > params.max_tokens or draw % 13 == 0:
            tokens = tokens[: min(params.max_tokens, 5)]
            cut = self.tokenizer.decode(tokens)
            return Completion(tuple(tokens), (-0.5,) * len(tokens), cut, "length")
        return Completion(tuple(tokens), (-0.25,) * len(tokens), text, "stop")


def _spoil(given: list[Completion], fault: str | None, params: SamplingParams) -> list[Completion]:
    first = given[0]
    match fault:
        case "too_few":
            return given[1:]
        case "too_many":
            return [*given, first]
        case "wrong_lengths":
            return [Completion(first.tokens, first.logprobs[1:], "", "stop"), *given[1:]]
        case "not_a_number":
            bad = (float("nan"),) * len(first.tokens)
            return [Completion(first.tokens, bad, "", "stop"), *given[1:]]
        case "too_long":
            n = params.max_tokens + 1
            return [Completion((5,) * n, (-1.0,) * n, "", "length"), *given[1:]]
    return given


@dataclass
class ScriptedPool:
    """Toy games whose environments fail as `faults` says, by (task id, how often it was opened)."""

    faults: dict[tuple[str, int], str] = field(default_factory=dict)
    stubborn: bool = False
    delay: Delay = no_delay
    opened: dict[str, int] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)
    twice: int = 0
    fallbacks: int = 0

    async def open(self, task: Task) -> "ScriptedEnv":
        await asyncio.sleep(self.delay())
        return self.make(ToyEnv(ToyGame.of(task.task_id)), task.task_id)

    async def close(self) -> None:
        """Nothing is held."""

    def make(self, inner: ToyEnv, task_id: str) -> "ScriptedEnv":
        number = self.opened.get(task_id, 0)
        self.opened[task_id] = number + 1
        key = (task_id, -1 if self.stubborn else number)
        env = ScriptedEnv(inner, self, task_id, self.faults.get(key, ""))
        if env.fault == "open_raises":
            raise EnvError("the game does not open")
        self.live.add(id(env))
        return env


@dataclass(eq=False)
class ScriptedEnv:
    inner: ToyEnv
    pool: ScriptedPool
    task_id: str
    fault: str

    @property
    def last(self) -> Any:
        return self.inner.last

    async def reset(self) -> Any:
        return await self.inner.reset()

    async def step(self, action: str) -> Any:
        await asyncio.sleep(self.pool.delay())
        if self.fault == "step_raises":
            raise ValueError("a bug in the environment")
        if self.fault == "step_times_out":
            await asyncio.Event().wait()
        return await self.inner.step(action)

    async def branch(self) -> "ScriptedEnv":
        await asyncio.sleep(self.pool.delay())
        if self.fault == "branch_raises":
            raise EnvError("no second one")
        return self.pool.make(await self.inner.branch(), self.task_id)

    async def close(self) -> None:
        if id(self) not in self.pool.live:
            self.pool.twice += 1
        self.pool.live.discard(id(self))
        await asyncio.sleep(0)
        if self.fault == "close_raises":
            raise RuntimeError("will not close")


def config(**fields: Any) -> RolloutConfig:
    settings = {"max_steps": 4, "max_turn_tokens": 200, "max_trajectory_tokens": 4000}
    return RolloutConfig(**{**settings, "timeout": 30.0, **fields})


def collect(
    plans: Sequence[GroupPlan],
    sampler: ScriptedSampler,
    pool: ScriptedPool,
    settings: RolloutConfig,
    **hooks: Any,
) -> list[TrajectoryGroup]:
    """Runs a collection; nothing may be left when it ends, however it ends."""

    async def run() -> list[TrajectoryGroup]:
        say = hooks.pop("say", lambda line: None)
        collector = Collector(pool, sampler.protocol, sampler, settings, say)  # type: ignore[arg-type]
        try:
            return await collector.collect(plans, SAMPLING, **hooks)
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left and not pool.live and not pool.twice

    return asyncio.run(run())
