"""Environment x protocol x backend -> trajectories: no barrier, every trajectory its own task."""

import asyncio
from collections.abc import Callable, Sequence

from agentic_rl.config import RolloutConfig
from agentic_rl.episode import Player, Sampler, Sampling
from agentic_rl.group import Group, GroupPlan, Stage, cancel
from agentic_rl.interfaces import Backend, EnvPool, PromptProtocol
from agentic_rl.tokens import Codec
from agentic_rl.types import Trajectory, TrajectoryGroup
from agentic_rl.watchdog import Watchdog

__all__ = ["Collector", "GroupPlan", "Sampling"]


class Collector:
    """Plays games with one policy. `say` takes lines for the person who watches.

    `codec` is what an earlier collector found out about the same tokenizer and protocol.
    """

    def __init__(
        self,
        pool: EnvPool,
        protocol: PromptProtocol,
        backend: Backend,
        config: RolloutConfig,
        say: Callable[[str], None] = lambda line: None,
        *,
        codec: Codec | None = None,
    ) -> None:
        self._pool = pool
        self._config = config
        self._say = say
        tokenizer = backend.tokenizer
        self.codec = codec or (Codec(tokenizer, protocol) if tokenizer else None)
        self._watchdog = Watchdog(config.timeout, say)
        sampler = Sampler(backend, config.concurrency, self._watchdog)
        self._player = Player(protocol, self.codec, sampler, config, self._watchdog)
        self._open_groups = asyncio.Semaphore(config.concurrency)

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
        plans, as soon as all groups before are finished. Whatever ends the collection, no task and
        no environment outlives it.
        """
        work = [asyncio.create_task(self._group(plan, sampling, on_finished)) for plan in plans]
        guard = asyncio.create_task(self._watchdog.watch())
        groups: list[TrajectoryGroup] = []
        try:
            while len(groups) < len(work):
                running = {task for task in work if not task.done()}
                await asyncio.wait({*running, guard}, return_when=asyncio.FIRST_COMPLETED)
                for task in [guard, *work]:
                    if task.done():
                        task.result()
                while len(groups) < len(work) and work[len(groups)].done():
                    groups.append(work[len(groups)].result())
                    on_group(groups[-1])
            return groups
        finally:
            await cancel([*work, guard])

    async def _group(
        self, plan: GroupPlan, sampling: Sampling, finished: Callable[[Trajectory], None]
    ) -> TrajectoryGroup:
        async with self._open_groups:
            stage = Stage(self._pool, plan.task, self._watchdog, self._say)
            group = Group(plan, sampling, self._player, stage, self._config, finished)
            return await group.play()
