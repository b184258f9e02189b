"""Bounds every call in time, and says what everything waits for when nothing moves."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from agentic_rl.errors import AgenticRLError

_TICKS = 20
"""Looks during one timeout."""


class StalledError(AgenticRLError):
    """Nothing was answered for longer than the recipe allows."""


class AbandonedError(Exception):
    """A call was cancelled, but not by us."""


@dataclass(slots=True)
class _Pulse:
    """When calls of one kind were last answered, and which have timed out since."""

    answered: float
    running: int = 0
    expired: set[str] = field(default_factory=set)
    told: bool = False


class Watchdog:
    """`doing` bounds a call: silent for `timeout` seconds, it fails with an error that names it.

    `watch` tells `say` what hangs when no call of a kind has been answered for a quarter of that.
    It raises StalledError after twice the timeout, where more than one call has timed out
    meanwhile: then the fault is not one trajectory's. Only seconds in which the event loop was free
    count.
    """

    def __init__(self, timeout: float, say: Callable[[str], None] = lambda line: None) -> None:
        self.timeout = timeout
        self.clock = 0.0
        self._say = say
        self._running: dict[int, _Call] = {}
        self._count = 0
        self._pulses: dict[str, _Pulse] = {}

    def doing(self, what: str) -> "_Call":
        """A call to enter with `async with`; the first word of `what` is its kind."""
        return _Call(self, what)

    async def watch(self) -> None:
        tick = min(1.0, self.timeout / _TICKS)
        while True:
            await asyncio.sleep(tick)
            self.clock += tick
            by_kind: dict[str, list[_Call]] = {}
            for call in self._running.values():
                by_kind.setdefault(call.kind, []).append(call)
            for kind, calls in by_kind.items():
                self._look(self._pulse(kind), calls)

    def enter(self, call: "_Call") -> int:
        pulse = self._pulse(call.kind)
        if not pulse.running and not pulse.expired:
            pulse.answered = self.clock
        pulse.running += 1
        self._count += 1
        self._running[self._count] = call
        return self._count

    def leave(self, key: int, *, answered: bool) -> None:
        pulse = self._pulse(self._running.pop(key).kind)
        pulse.running -= 1
        if answered:
            pulse.answered, pulse.told = self.clock, False
            pulse.expired.clear()

    def _pulse(self, kind: str) -> _Pulse:
        return self._pulses.setdefault(kind, _Pulse(self.clock))

    def _look(self, pulse: _Pulse, calls: list["_Call"]) -> None:
        idle = self.clock - pulse.answered
        for call in calls:
            if self.clock - call.since > self.timeout:
                call.expire()
                pulse.expired.add(call.what)
        if idle > 2 * self.timeout and len(pulse.expired) > 1:
            raise StalledError(f"{self._report(idle, calls)}. See rollout.timeout")
        if idle > self.timeout / 4 and not pulse.told:
            pulse.told = True
            self._say(self._report(idle, calls))

    def _report(self, idle: float, calls: list["_Call"]) -> str:
        calls = sorted(calls, key=lambda call: call.since)
        oldest = [f"{call.what} for {self.clock - call.since:.3g} s" for call in calls[:3]]
        more = f"; and {len(calls) - 3} more" if len(calls) > 3 else ""
        return f"no answer for {idle:.3g} s. Waiting: {'; '.join(oldest)}{more}"


class _Call:
    """One bounded call, an asynchronous context."""

    __slots__ = ("_expired", "_key", "_scope", "_watchdog", "kind", "since", "what")

    def __init__(self, watchdog: Watchdog, what: str) -> None:
        self._watchdog = watchdog
        self._expired = False
        self.what = what
        self.kind = what.partition(" ")[0]

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
