"""Bounds every call in time, and says what everything waits for when nothing moves."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from agentic_rl.errors import AgenticRLError

_TICKS = 20
"""Looks during one timeout."""


class StalledError(AgenticRLError):
    """Nothing was answered for longer than the recipe allows."""


class AbandonedError(Exception):
    """A call was cancelled, but not by us."""


class Watchdog:
    """`doing` bounds a call: silent for `timeout` seconds, it fails with an error that names it.

    `watch` tells `say` what hangs when nothing has been answered for a quarter of that, and raises
    StalledError after twice the timeout. Only seconds in which the event loop was free count.
    """

    def __init__(self, timeout: float, say: Callable[[str], None] = lambda line: None) -> None:
        self.timeout = timeout
        self._say = say
        self._running: dict[int, _Call] = {}
        self._count = 0
        self.clock = 0.0
        self._answered = 0.0
        self._told = False

    def doing(self, what: str) -> "_Call":
        return _Call(self, what)

    async def watch(self) -> None:
        tick = min(1.0, self.timeout / _TICKS)
        self._answered = self.clock
        while True:
            await asyncio.sleep(tick)
            self.clock += tick
            if not self._running:
                self._answered = self.clock
            idle = self.clock - self._answered
            if idle > 2 * self.timeout:
                raise StalledError(f"{self._report(idle)}. See rollout.timeout")
            if idle > self.timeout / 4 and not self._told:
                self._told = True
                self._say(self._report(idle))
            for call in list(self._running.values()):
                if self.clock - call.since > self.timeout:
                    call.expire()

    def enter(self, call: "_Call") -> int:
        self._count += 1
        self._running[self._count] = call
        return self._count

    def leave(self, key: int, *, answered: bool) -> None:
        del self._running[key]
        if answered:
            self._answered = self.clock
            self._told = False

    def _report(self, idle: float) -> str:
        calls = sorted(self._running.values(), key=lambda call: call.since)
        oldest = [f"{call.what} for {self.clock - call.since:.3g} s" for call in calls[:3]]
        more = f"; and {len(calls) - 3} more" if len(calls) > 3 else ""
        return f"no answer of any kind for {idle:.3g} s. Waiting: {'; '.join(oldest)}{more}"


class _Call:
    """One bounded call, an asynchronous context."""

    __slots__ = ("_expired", "_key", "_scope", "_watchdog", "since", "what")

    def __init__(self, watchdog: Watchdog, what: str) -> None:
        self._watchdog = watchdog
        self._expired = False
        self.what = what

    def expire(self) -> None:
        """Once: what it cancels may take its time to clean up."""
        if not self._expired:
            self._expired = True
            self._scope.reschedule(0.0)

    async def __aenter__(self) -> None:
        self.since = self._watchdog.clock
        self._scope = asyncio.timeout(None)
        await self._scope.__aenter__()
        self._key = self._watchdog.enter(self)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watchdog.leave(self._key, answered=not self._expired)
        try:
            await self._scope.__aexit__(kind, error, trace)
        except TimeoutError:
            seconds = self._watchdog.timeout
            raise TimeoutError(f"no answer for {seconds:g} s") from None
        if kind is asyncio.CancelledError and not _is_cancelled():
            raise AbandonedError("given up by whoever was to answer") from error


def _is_cancelled() -> bool:
    """Whether this very task is cancelled, or only something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
