"""Notices when nothing moves any more, and says what everything waits for."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agentic_rl.errors import AgenticRLError


class StalledError(AgenticRLError):
    """Nothing finished for longer than the recipe allows."""


class Watchdog:
    """`doing` marks what runs; `watch` raises StalledError after `timeout` idle seconds."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._running: dict[int, tuple[str, float]] = {}
        self._count = 0
        self._moved = time.monotonic()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        self._count += 1
        key = self._count
        self._running[key] = (what, time.monotonic())
        try:
            yield
        finally:
            del self._running[key]
            self.progress()

    def progress(self) -> None:
        self._moved = time.monotonic()

    async def watch(self) -> None:
        self.progress()
        while True:
            await asyncio.sleep(min(1.0, self._timeout / 4))
            if self._running and time.monotonic() - self._moved > self._timeout:
                raise StalledError(self._report())

    def _report(self) -> str:
        now = time.monotonic()
        oldest = sorted(self._running.values(), key=lambda item: item[1])[:3]
        what = "; ".join(f"{name} for {now - since:.0f} s" for name, since in oldest)
        more = len(self._running) - len(oldest)
        return f"nothing finished for {self._timeout:.0f} s (rollout.timeout). Waiting: {what}" + (
            f"; and {more} more" if more else ""
        )
