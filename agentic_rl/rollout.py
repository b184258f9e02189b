"""Environment x protocol x backend -> trajectories: no barrier, every trajectory its own task.

A failure is data: it ends its own trajectory, is counted, and no other trajectory changes by it.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agentic_rl.config import RolloutConfig
from agentic_rl.errors import AgenticRLError, BackendError, EnvError, IntegrityError
from agentic_rl.interfaces import Backend, Env, EnvPool, PromptProtocol
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
    TrajectoryGroup,
    stable_hash,
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


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One game to play, once per branch; the first turn is one request for all branches."""

    task: Task
    group_id: str
    branches: tuple[int, ...]


class TrajectoryError(Exception):
    """The environment's or the sampler's failure, on its way to end one trajectory."""

    def __init__(self, reason: StopReason, cause: BaseException) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.reason = reason


@dataclass(slots=True)
class _Bill:
    """Tokens spent on one trajectory, failed attempts included."""

    prefill: int = 0
    sampled: int = 0
    attempts: int = 0
    env_errors: int = 0
    sample_errors: int = 0

    def add(self, error: TrajectoryError) -> None:
        if error.reason is StopReason.ENV_ERROR:
            self.env_errors += 1
        else:
            self.sample_errors += 1


@dataclass(slots=True)
class _Episode:
    """One attempt at one trajectory."""

    env: Env
    conversation: Conversation | None
    prompt: TokenPrefix | tuple[int, ...]
    steps: list[Step]
    bill: _Bill


class Collector:
    """Plays games with one policy."""

    def __init__(
        self,
        pool: EnvPool,
        protocol: PromptProtocol,
        backend: Backend,
        config: RolloutConfig,
    ) -> None:
        self._pool = pool
        self._protocol = protocol
        self._backend = backend
        self._config = config
        tokenizer = backend.tokenizer
        self.codec = Codec(tokenizer, protocol) if tokenizer else None
        self._slots = asyncio.Semaphore(config.concurrency)
        self._open_groups = asyncio.Semaphore(config.concurrency)
        self._watchdog = Watchdog(config.timeout)

    async def collect(
        self,
        plans: Sequence[GroupPlan],
        sampling: Sampling,
        *,
        on_finished: Callable[[Trajectory], None] = lambda trajectory: None,
        on_group: Callable[[TrajectoryGroup], None] = lambda group: None,
    ) -> list[TrajectoryGroup]:
        """One group per plan, in the order of the plans; a failed trajectory carries its error.

        `on_finished` is called for each trajectory as it ends; `on_group` in the order of the
        plans, as soon as all groups before are finished.
        """
        self._on_finished = on_finished
        work = [asyncio.create_task(self._group(plan, sampling)) for plan in plans]
        guard = asyncio.create_task(self._watchdog.watch())
        groups: list[TrajectoryGroup] = []
        try:
            while len(groups) < len(work):
                running = {task for task in work if not task.done()}
                await asyncio.wait({*running, guard}, return_when=asyncio.FIRST_COMPLETED)
                if guard.done():
                    guard.result()
                for task in work:
                    if task.done():
                        task.result()
                while len(groups) < len(work) and work[len(groups)].done():
                    groups.append(work[len(groups)].result())
                    on_group(groups[-1])
            return groups
        finally:
            await _cancel([*work, guard])

    async def _group(self, plan: GroupPlan, sampling: Sampling) -> TrajectoryGroup:
        async with self._open_groups:
            bills = {branch: _Bill() for branch in plan.branches}
            envs: list[Env] = []
            try:
                envs = await self._fork(plan)
                firsts = await self._first_turn(plan, envs[0], sampling, bills)
            except TrajectoryError as error:
                await _close(envs)
                return self._all_failed(plan, error, bills)
            runs = [
                asyncio.create_task(self._branch(plan, branch, env, first, sampling, bills[branch]))
                for branch, env, first in zip(plan.branches, envs, firsts, strict=True)
            ]
            try:
                return TrajectoryGroup(plan.task, tuple(await asyncio.gather(*runs)))
            finally:
                await _cancel(runs)

    def _all_failed(
        self, plan: GroupPlan, error: TrajectoryError, bills: dict[int, _Bill]
    ) -> TrajectoryGroup:
        trajectories = []
        for branch in plan.branches:
            bills[branch].attempts = max(1, bills[branch].attempts)
            bills[branch].add(error)
            trajectories.append(self._finish(_failed(plan, branch, error, bills[branch])))
        return TrajectoryGroup(plan.task, tuple(trajectories))

    async def _fork(self, plan: GroupPlan) -> list[Env]:
        """One environment a branch, all proved to start alike."""
        for attempt in range(self._tries):
            envs: list[Env] = []
            try:
                with self._watchdog.doing(f"opening {plan.task.task_id}"):
                    envs.append(await self._pool.open(plan.task))
                    await envs[0].reset()
                    for _ in plan.branches[1:]:
                        envs.append(await envs[0].branch())
                _prove_alike(plan.task, [env.last for env in envs])
                return envs
            except IntegrityError as error:
                await _close(envs)
                raise TrajectoryError(StopReason.ENV_ERROR, error) from error
            except Exception as error:
                await _close(envs)
                self._may_fail(error)
                if attempt + 1 == self._tries:
                    raise TrajectoryError(StopReason.ENV_ERROR, error) from error
        raise AssertionError("at least one attempt is made")

    async def _first_turn(
        self, plan: GroupPlan, env: Env, sampling: Sampling, bills: dict[int, _Bill]
    ) -> list[Completion | None]:
        """The first completion of each branch, from one request; None where there is no room."""
        first = plan.branches[0]
        episode = self._begin(plan.task, env, bills[first])
        room = self._room(episode.prompt)
        if room < 1:
            return [None] * len(plan.branches)
        prompt = self._prompt(plan.task, first, episode)
        params = sampling.params(plan.task, first, 0, room)
        for attempt in range(self._tries):
            try:
                completions = await self._sample(prompt, len(plan.branches), params, bills[first])
                for branch, completion in zip(plan.branches, completions, strict=True):
                    bills[branch].sampled += len(completion.tokens)
                return list(completions)
            except TrajectoryError as error:
                self._may_fail(error)
                if attempt + 1 == self._tries:
                    raise
        raise AssertionError("at least one attempt is made")

    async def _branch(
        self,
        plan: GroupPlan,
        branch: int,
        env: Env,
        first: Completion | None,
        sampling: Sampling,
        bill: _Bill,
    ) -> Trajectory:
        """One trajectory, tried again from its start where the environment or the sampler fails."""
        start = env.last
        while True:
            bill.attempts += 1
            try:
                with self._watchdog.doing(f"{plan.task.task_id} branch {branch}"):
                    trajectory = await self._attempt(plan, branch, env, first, sampling, bill)
                return self._finish(trajectory)
            except TrajectoryError as error:
                bill.add(error)
                self._may_fail(error)
                if bill.attempts == self._tries:
                    return self._finish(_failed(plan, branch, error, bill))
            finally:
                await _close([env])
            try:
                env = await self._reopen(plan.task, start)
            except TrajectoryError as error:
                bill.add(error)
                self._may_fail(error)
                return self._finish(_failed(plan, branch, error, bill))

    async def _reopen(self, task: Task, start: EnvStep) -> Env:
        envs: list[Env] = []
        try:
            envs.append(await self._pool.open(task))
            _prove_alike(task, [start, await envs[0].reset()])
        except Exception as error:
            await _close(envs)
            raise TrajectoryError(StopReason.ENV_ERROR, error) from error
        return envs[0]

    async def _attempt(
        self,
        plan: GroupPlan,
        branch: int,
        env: Env,
        first: Completion | None,
        sampling: Sampling,
        bill: _Bill,
    ) -> Trajectory:
        episode = self._begin(plan.task, env, bill)
        completion = first
        reason = StopReason.MAX_TRAJECTORY_TOKENS
        while completion is not None:
            step = await self._act(episode, completion)
            episode.steps.append(step)
            if step.result.done or len(episode.steps) == self._config.max_steps:
                reason = StopReason.WON if step.result.won else StopReason.MAX_STEPS
                break
            if episode.conversation is not None:
                episode.prompt = episode.conversation.add_reply(episode.steps)
            completion = await self._next_turn(plan.task, branch, episode, sampling)
        return Trajectory(
            task=plan.task,
            group_id=plan.group_id,
            branch=branch,
            steps=tuple(episode.steps),
            segments=_segments(episode.conversation),
            won=reason is StopReason.WON,
            stop_reason=reason,
            prefill=bill.prefill,
            sampled=bill.sampled,
            attempts=bill.attempts,
            env_errors=bill.env_errors,
            sample_errors=bill.sample_errors,
        )

    def _begin(self, task: Task, env: Env, bill: _Bill) -> _Episode:
        if self.codec is None:
            return _Episode(env, None, (), [], bill)
        conversation = Conversation(self.codec, task)
        start = env.last
        prompt = conversation.open(
            self._protocol.opening(task, start.observation, start.admissible_actions)
        )
        return _Episode(env, conversation, prompt, [], bill)

    async def _next_turn(
        self, task: Task, branch: int, episode: _Episode, sampling: Sampling
    ) -> Completion | None:
        """None where the trajectory's tokens leave no room for a reply."""
        room = self._room(episode.prompt)
        if room < 1:
            return None
        prompt = self._prompt(task, branch, episode)
        params = sampling.params(task, branch, len(episode.steps), room)
        completion = (await self._sample(prompt, 1, params, episode.bill))[0]
        episode.bill.sampled += len(completion.tokens)
        return completion

    async def _act(self, episode: _Episode, completion: Completion) -> Step:
        """Reads the reply and does what it says; a malformed one leaves the environment alone."""
        before = episode.env.last
        parsed = self._protocol.parse(completion.text)
        cut = completion.stop_reason == "length"
        if parsed.action is None:
            result = replace(before, admissible=False)
        else:
            try:
                result = await episode.env.step(parsed.action)
            except Exception as error:
                raise TrajectoryError(StopReason.ENV_ERROR, error) from error
        place = (0, 0, 0)
        if episode.conversation is not None:
            place = episode.conversation.add_completion(completion.tokens)
        return Step(
            observation=before.observation,
            admissible_actions=before.admissible_actions,
            state=before.state,
            completion=completion,
            action=parsed.action,
            malformed=parsed.action is None and not cut,
            cut=cut,
            result=result,
            segment=place[0],
            prompt_end=place[1],
            completion_end=place[2],
        )

    async def _sample(
        self, prompt: Prompt, n: int, params: SamplingParams, bill: _Bill
    ) -> list[Completion]:
        async with self._slots:
            try:
                with self._watchdog.doing(
                    f"sampling turn {prompt.turn} of {prompt.task.task_id} branch {prompt.branch}"
                ):
                    bill.prefill += len(prompt.tokens)
                    completions = await self._backend.sample(prompt, n, params)
                    _check_completions(completions, n)
                    return completions
            except Exception as error:
                raise TrajectoryError(StopReason.SAMPLE_ERROR, error) from error

    def _prompt(self, task: Task, branch: int, episode: _Episode) -> Prompt:
        last, steps = episode.env.last, episode.steps
        view = self._protocol.view(task, steps, last.observation, last.admissible_actions)
        messages: tuple[Message, ...] = ()
        if self.codec is None:
            # A backend without tokens reads the messages; elsewhere the tokens say it all.
            messages = tuple(
                self._protocol.window(task, steps, last.observation, last.admissible_actions)
            )
        return Prompt(
            tokens=episode.prompt,
            messages=messages,
            tools=self._protocol.tools,
            view=view,
            task=task,
            branch=branch,
            turn=len(episode.steps),
        )

    def _room(self, prompt: Sequence[int]) -> int:
        config = self._config
        return min(config.max_turn_tokens, config.max_trajectory_tokens - len(prompt))

    @property
    def _tries(self) -> int:
        return self._config.retries + 1 if self._config.on_error == "retry" else 1

    def _may_fail(self, error: BaseException) -> None:
        """Where the recipe says `fail`, the first failure ends the run."""
        if self._config.on_error == "fail":
            kind = EnvError if isinstance(error, EnvError) else BackendError
            raise kind(f"a trajectory failed and rollout.on_error=fail: {error}") from error

    def _finish(self, trajectory: Trajectory) -> Trajectory:
        self._watchdog.progress()
        self._on_finished(trajectory)
        return trajectory


def _prove_alike(task: Task, starts: Sequence[EnvStep]) -> None:
    for start in starts[1:]:
        if start.observation != starts[0].observation:
            raise IntegrityError(
                f"{task.task_id} opens differently in two branches:"
                f" {starts[0].observation!r} and {start.observation!r}"
            )


def _check_completions(completions: Sequence[Completion], n: int) -> None:
    if len(completions) != n:
        raise BackendError(f"{len(completions)} completions came back where {n} were asked for")
    for completion in completions:
        if len(completion.tokens) != len(completion.logprobs):
            raise BackendError(
                f"{len(completion.logprobs)} log-probabilities for {len(completion.tokens)} tokens"
            )
        if not all(map(math.isfinite, completion.logprobs)):
            raise BackendError("a log-probability is not finite")


def _failed(plan: GroupPlan, branch: int, error: TrajectoryError, bill: _Bill) -> Trajectory:
    return Trajectory(
        task=plan.task,
        group_id=plan.group_id,
        branch=branch,
        steps=(),
        segments=(),
        won=False,
        stop_reason=error.reason,
        error=str(error),
        prefill=bill.prefill,
        sampled=bill.sampled,
        attempts=bill.attempts,
        env_errors=bill.env_errors,
        sample_errors=bill.sample_errors,
    )


def _segments(conversation: Conversation | None) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, conversation.segments)) if conversation else ()


async def _close(envs: Sequence[Env]) -> None:
    for env in envs:
        try:
            await env.close()
        except AgenticRLError:
            # It failed already, and its trajectory says so.
            continue


async def _cancel(tasks: Sequence["asyncio.Task[object]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
