"""One attempt at one trajectory: the policy's replies and the environment's answers in turn."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rl.config import RolloutConfig
from agentic_rl.errors import BackendError
from agentic_rl.hashing import stable_hash
from agentic_rl.interfaces import Backend, Env, PromptProtocol
from agentic_rl.tokens import Codec, Conversation, TokenPrefix
from agentic_rl.types import (
    Completion,
    EnvStep,
    Message,
    Phase,
    Prompt,
    SamplingParams,
    Step,
    StopReason,
    Task,
    Trajectory,
)
from agentic_rl.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Sampling:
    """What decides every sample of one collection, apart from the game, the branch and the turn."""

    phase: Phase
    update: int
    seed: int
    temperature: float
    top_p: float

    def params(self, task: Task, branch: int, turn: int, max_tokens: int) -> SamplingParams:
        seed = stable_hash(self.seed, self.phase, self.update, task.task_id, branch, turn)
        return SamplingParams(self.temperature, self.top_p, max_tokens, seed)


class Failure(Exception):
    """The environment's or the sampler's failure, on its way to end one trajectory."""

    def __init__(self, reason: StopReason, cause: BaseException, where: str) -> None:
        super().__init__(f"{type(cause).__name__}: {cause} ({where})")
        self.reason = reason
        self.cause = cause


@dataclass(slots=True)
class Bill:
    """What one trajectory has cost, failed attempts included."""

    prefill: int = 0
    sampled: int = 0
    env_errors: int = 0
    sample_errors: int = 0

    @property
    def failures(self) -> int:
        return self.env_errors + self.sample_errors

    def add(self, failure: Failure) -> None:
        if failure.reason is StopReason.ENV_ERROR:
            self.env_errors += 1
        else:
            self.sample_errors += 1


@dataclass(frozen=True, slots=True)
class Seat:
    """Whose trajectory it is, how it samples and who pays."""

    task: Task
    group_id: str
    branch: int
    sampling: Sampling
    bill: Bill

    def __str__(self) -> str:
        return f"{self.task.task_id} branch {self.branch}"


class Sampler:
    """Asks the backend, `concurrency` requests at a time, and checks and bills what comes back."""

    def __init__(self, backend: Backend, concurrency: int, watchdog: Watchdog) -> None:
        self._backend = backend
        self._slots = asyncio.Semaphore(concurrency)
        self._watchdog = watchdog

    async def ask(
        self, prompt: Prompt, params: SamplingParams, bills: Sequence[Bill]
    ) -> list[Completion]:
        """One completion a bill; the prompt goes onto the first. Raises Failure."""
        where = f"sampling turn {prompt.turn} of {prompt.task.task_id} branch {prompt.branch}"
        async with self._slots:
            try:
                async with self._watchdog.doing(where):
                    completions = await self._backend.sample(prompt, len(bills), params)
                _charge(bills, len(prompt.tokens), completions)
                _check(completions, len(bills), params.max_tokens)
                return completions
            except Exception as error:
                raise Failure(StopReason.SAMPLE_ERROR, error, where) from error


@dataclass(slots=True)
class _Episode:
    """What one attempt has come to; `conversation` is None where the backend takes no tokens."""

    seat: Seat
    env: Env
    conversation: Conversation | None
    prompt: TokenPrefix | tuple[int, ...]
    steps: list[Step]


class Player:
    """Plays trajectories with one policy, under one protocol and the recipe's limits."""

    def __init__(
        self,
        protocol: PromptProtocol,
        codec: Codec | None,
        sampler: Sampler,
        config: RolloutConfig,
        watchdog: Watchdog,
    ) -> None:
        self.protocol = protocol
        self._codec = codec
        self._sampler = sampler
        self._config = config
        self._watchdog = watchdog

    def opening(self, task: Task, start: EnvStep) -> Conversation | None:
        """The conversation before the first reply, for every branch of a group to fork."""
        if self._codec is None:
            return None
        conversation = Conversation(self._codec, task)
        conversation.open(self.protocol.opening(task, start.observation, start.admissible_actions))
        return conversation

    async def first_turn(
        self, seats: Sequence[Seat], env: Env, opening: Conversation | None
    ) -> list[Completion] | None:
        """Each seat's first completion, from one request; None where there is no room for any."""
        episode = self._begin(seats[0], env, opening)
        return await self._ask(episode, [seat.bill for seat in seats])

    async def play(
        self, seat: Seat, env: Env, opening: Conversation | None, first: Completion | None
    ) -> Trajectory:
        """From the first completion to the end. Raises Failure."""
        episode = self._begin(seat, env, opening)
        steps = episode.steps
        completion, reason = first, StopReason.MAX_TRAJECTORY_TOKENS
        while completion is not None:
            steps.append(await self._act(episode, completion))
            result = steps[-1].result
            if result.done or len(steps) == self._config.max_steps:
                reason = StopReason.WON if result.won else StopReason.MAX_STEPS
                break
            if episode.conversation is not None:
                episode.prompt = episode.conversation.add_reply(steps)
            replies = await self._ask(episode, [seat.bill])
            completion = replies[0] if replies else None
        conversation = episode.conversation
        segments = conversation.segments if conversation is not None else ()
        return trajectory_of(seat, reason, steps=tuple(steps), segments=segments)

    def _begin(self, seat: Seat, env: Env, opening: Conversation | None) -> _Episode:
        if opening is None:
            return _Episode(seat, env, None, (), [])
        conversation = opening.fork()
        return _Episode(seat, env, conversation, conversation.prompt(), [])

    async def _ask(self, episode: _Episode, bills: Sequence[Bill]) -> list[Completion] | None:
        """The next completions; None where the trajectory's tokens leave no room for a reply."""
        config, seat = self._config, episode.seat
        room = min(config.max_turn_tokens, config.max_trajectory_tokens - len(episode.prompt))
        if room < 1:
            return None
        params = seat.sampling.params(seat.task, seat.branch, len(episode.steps), room)
        return await self._sampler.ask(self._prompt(episode), params, bills)

    def _prompt(self, episode: _Episode) -> Prompt:
        seat, steps = episode.seat, episode.steps
        last, task = episode.env.last, seat.task
        view = self.protocol.view(task, steps, last.observation, last.admissible_actions)
        messages: tuple[Message, ...] = ()
        if self._codec is None:
            # A backend without tokens reads the messages; elsewhere the tokens say it all.
            messages = tuple(
                self.protocol.window(task, steps, last.observation, last.admissible_actions)
            )
        return Prompt(
            tokens=episode.prompt,
            messages=messages,
            tools=self.protocol.tools,
            view=view,
            task=task,
            branch=seat.branch,
            turn=len(steps),
        )

    async def _act(self, episode: _Episode, completion: Completion) -> Step:
        """Reads the reply and does what it says; a malformed one leaves the environment alone."""
        before = episode.env.last
        action = self.protocol.parse(completion.text).action
        cut = completion.stop_reason == "length"
        if action is None:
            result = replace(before, admissible=False)
        else:
            result = await self._step(episode, action)
        place = (0, 0, 0)
        if episode.conversation is not None:
            place = episode.conversation.add_completion(completion.tokens)
        return Step(
            observation=before.observation,
            admissible_actions=before.admissible_actions,
            state=before.state,
            completion=completion,
            action=action,
            malformed=action is None and not cut,
            cut=cut,
            result=result,
            segment=place[0],
            prompt_end=place[1],
            completion_end=place[2],
        )

    async def _step(self, episode: _Episode, action: str) -> EnvStep:
        where = f"step {len(episode.steps)} of {episode.seat}: {action[:80]!r}"
        try:
            async with self._watchdog.doing(where):
                return await episode.env.step(action)
        except Exception as error:
            raise Failure(StopReason.ENV_ERROR, error, where) from error


def trajectory_of(
    seat: Seat,
    reason: StopReason,
    *,
    steps: tuple[Step, ...] = (),
    segments: tuple[tuple[int, ...], ...] = (),
    error: str | None = None,
) -> Trajectory:
    """A seat's trajectory with all that it cost, failed attempts included."""
    bill = seat.bill
    return Trajectory(
        task=seat.task,
        group_id=seat.group_id,
        branch=seat.branch,
        steps=steps,
        segments=segments,
        won=reason is StopReason.WON,
        stop_reason=reason,
        error=error,
        prefill=bill.prefill,
        sampled=bill.sampled,
        attempts=bill.failures + (error is None),
        env_errors=bill.env_errors,
        sample_errors=bill.sample_errors,
    )


def _charge(bills: Sequence[Bill], prompt: int, completions: Sequence[Completion]) -> None:
    """What came back was paid for, whether it can be used or not."""
    bills[0].prefill += prompt
    for number, completion in enumerate(completions):
        bills[min(number, len(bills) - 1)].sampled += len(completion.tokens)


def _check(completions: Sequence[Completion], n: int, most: int) -> None:
    if len(completions) != n:
        raise BackendError(f"{len(completions)} completions came back where {n} were asked for")
    for completion in completions:
        tokens, logprobs = len(completion.tokens), completion.logprobs
        if tokens != len(logprobs):
            raise BackendError(f"{len(logprobs)} log-probabilities for {tokens} tokens")
        if tokens > most:
            raise BackendError(f"a completion of {tokens} tokens where {most} were the most")
        if not all(map(math.isfinite, logprobs)):
            raise BackendError("a log-probability is not finite")
