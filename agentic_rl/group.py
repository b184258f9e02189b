"""One game played by a group of branches: forked, proved alike, and each tried again on its own.

A failure is data: it ends its own trajectory, is counted, and no other trajectory changes by it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agentic_rl.config import RolloutConfig
from agentic_rl.episode import Bill, Failure, Player, Sampling, Seat, trajectory_of
from agentic_rl.errors import BackendError, EnvError, IntegrityError
from agentic_rl.interfaces import Env, EnvPool, PromptProtocol
from agentic_rl.tokens import Conversation
from agentic_rl.types import Completion, EnvStep, StopReason, Task, Trajectory, TrajectoryGroup
from agentic_rl.watchdog import Watchdog

T = TypeVar("T")
CLOSE_SECONDS = 10.0
"""An environment that does not close within them is left behind."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One game to play, once per branch; the first turn is one request for all branches."""

    task: Task
    group_id: str
    branches: tuple[int, ...]


class Stage:
    """The open environments of one game; each is closed once, whatever happens."""

    def __init__(
        self, pool: EnvPool, task: Task, watchdog: Watchdog, say: Callable[[str], None]
    ) -> None:
        self._pool = pool
        self._task = task
        self._watchdog = watchdog
        self._say = say
        # By identity: environments may well be equal.
        self._open: dict[int, Env] = {}

    async def open(self) -> Env:
        async with self._watchdog.doing(f"opening {self._task.task_id}"):
            env = await self._pool.open(self._task)
            self._open[id(env)] = env
            await env.reset()
            return env

    async def branch(self, env: Env) -> Env:
        async with self._watchdog.doing(f"branching {self._task.task_id}"):
            other = await env.branch()
            self._open[id(other)] = other
            return other

    async def close(self, env: Env) -> None:
        """A failure to close is told; what was played stays."""
        if self._open.pop(id(env), None) is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await env.close()
        except Exception as error:
            self._say(f"{self._task.task_id} did not close: {type(error).__name__}: {error}")

    async def close_all(self) -> None:
        """Cancelled on the way, it still asks every one of them."""
        interrupted: asyncio.CancelledError | None = None
        for env in list(self._open.values()):
            try:
                await self.close(env)
            except asyncio.CancelledError as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted


class Group:
    """Plays one plan."""

    def __init__(
        self,
        plan: GroupPlan,
        sampling: Sampling,
        player: Player,
        stage: Stage,
        config: RolloutConfig,
        finished: Callable[[Trajectory], None],
    ) -> None:
        self._plan = plan
        self._player = player
        self._stage = stage
        self._config = config
        self._finished = finished
        self._seats = [
            Seat(plan.task, plan.group_id, branch, sampling, Bill()) for branch in plan.branches
        ]

    async def play(self) -> TrajectoryGroup:
        """One trajectory a branch, in the order of the branches."""
        try:
            trajectories = await self._play()
        finally:
            await self._stage.close_all()
        return TrajectoryGroup(self._plan.task, tuple(trajectories))

    async def _play(self) -> list[Trajectory]:
        seats = self._seats
        try:
            envs = await self._trying(self._fork, seats)
            opening = self._player.opening(self._plan.task, envs[0].last)
            firsts = await self._trying(
                lambda: self._player.first_turn(seats, envs[0], opening), seats
            )
        except Failure as failure:
            return [self._fail(seat, failure) for seat in seats]
        runs = [
            asyncio.create_task(
                self._branch(seat, env, opening, firsts[number] if firsts else None)
            )
            for number, (seat, env) in enumerate(zip(seats, envs, strict=True))
        ]
        try:
            return await asyncio.gather(*runs)
        finally:
            await cancel(runs)

    async def _branch(
        self, seat: Seat, env: Env, opening: Conversation | None, first: Completion | None
    ) -> Trajectory:
        """One trajectory, tried again from its start where the environment or the sampler fails."""
        start, given = env.last, [env]

        async def attempt() -> Trajectory:
            env = given.pop() if given else await self._reopen(start)
            try:
                return await self._player.play(seat, env, opening, first)
            finally:
                await self._stage.close(env)

        try:
            trajectory = await self._trying(attempt, [seat])
        except Failure as failure:
            return self._fail(seat, failure)
        self._finished(trajectory)
        return trajectory

    async def _trying(self, attempt: Callable[[], Awaitable[T]], seats: Sequence[Seat]) -> T:
        """The attempt's result; Failure once `retries` more have failed. All seats count it."""
        tries = self._config.retries + 1 if self._config.on_error == "retry" else 1
        while True:
            try:
                return await attempt()
            except Failure as failure:
                for seat in seats:
                    seat.bill.add(failure)
                self._end_run(failure)
                final = isinstance(failure.cause, IntegrityError)
                if final or max(seat.bill.failures for seat in seats) >= tries:
                    raise

    def _end_run(self, failure: Failure) -> None:
        """Where the recipe says `fail`, or nothing more can succeed, one failure ends the run."""
        cause = failure.cause
        if isinstance(cause, BackendError) and cause.hopeless:
            raise cause
        if self._config.on_error == "fail":
            kind = EnvError if failure.reason is StopReason.ENV_ERROR else BackendError
            raise kind(f"a trajectory failed and rollout.on_error=fail: {failure}") from cause

    async def _fork(self) -> list[Env]:
        """One environment a branch, all proved to start alike."""
        try:
            envs = [await self._stage.open()]
            for _ in self._plan.branches[1:]:
                envs.append(await self._stage.branch(envs[0]))
            self._prove_alike([env.last for env in envs])
            return envs
        except Exception as error:
            await self._stage.close_all()
            raise self._env_failure(error) from error

    async def _reopen(self, start: EnvStep) -> Env:
        """A fresh environment that starts like the one that failed."""
        try:
            env = await self._stage.open()
        except Exception as error:
            raise self._env_failure(error) from error
        try:
            self._prove_alike([start, env.last])
        except IntegrityError as error:
            await self._stage.close(env)
            raise self._env_failure(error) from error
        return env

    def _env_failure(self, error: Exception) -> Failure:
        return Failure(StopReason.ENV_ERROR, error, f"opening {self._plan.task.task_id}")

    def _prove_alike(self, starts: Sequence[EnvStep]) -> None:
        prove_alike(self._plan.task, starts, self._player.protocol)

    def _fail(self, seat: Seat, failure: Failure) -> Trajectory:
        trajectory = trajectory_of(seat, failure.reason, error=str(failure))
        self._finished(trajectory)
        return trajectory


def prove_alike(task: Task, starts: Sequence[EnvStep], protocol: PromptProtocol) -> None:
    """IntegrityError, with both values, where two branches do not begin alike."""
    first = _beginning(task, starts[0], protocol)
    for start in starts[1:]:
        for what, value in _beginning(task, start, protocol).items():
            if value != first[what]:
                raise IntegrityError(
                    f"two branches of {task.task_id} differ in their {what}:"
                    f" {first[what]!r} and {value!r}"
                )


def _beginning(task: Task, start: EnvStep, protocol: PromptProtocol) -> dict[str, object]:
    opening = protocol.opening(task, start.observation, start.admissible_actions)
    return {
        "first observation": start.observation,
        "first state": start.state,
        "first prompt": [message.content for message in opening],
    }


async def cancel(tasks: Sequence["asyncio.Task[object]"]) -> None:
    """Ends what still runs, and waits until it has ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
