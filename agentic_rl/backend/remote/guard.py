"""Every call to a service is bounded in time, and every failure is worded."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from agentic_rl.backend.remote.service import Remedy, RemoteError, Service
from agentic_rl.errors import AgenticRLError

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Runs what blocks in a daemon thread: left behind, it holds up neither loop nor exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = function()
        except BaseException as error:
            failure = error
        # The loop is closed where nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, daemon=True, name="agentic-rl-remote").start()
    return await future


class Guard:
    """Calls of one session. After a failure that leaves no hope, nothing more is sent."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._hopeless: RemoteError | None = None

    async def call(self, call: Callable[[], Awaitable[T]], doing: str, seconds: float) -> T:
        """The result; RemoteError for whatever else happens, but for our own cancellation."""
        if self._hopeless is not None:
            raise RemoteError(str(self._hopeless), Remedy.STOP)
        try:
            async with asyncio.timeout(seconds):
                return await call()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RemoteError(
                f"{self._service.name}'s SDK gave up {doing}: continue with `agentic-rl resume`",
                Remedy.REBUILD,
            ) from None
        except AgenticRLError as error:
            raise self._remember(error) from error.__cause__
        except TimeoutError as error:
            raise RemoteError(
                f"{self._service.name} did not finish {doing} within {seconds:g} s:"
                " raise backend.timeout, or continue later with `agentic-rl resume`",
                Remedy.REPEAT,
            ) from error
        except Exception as error:
            raise self._remember(self._service.word(error, doing)) from error

    def _remember(self, error: AgenticRLError) -> AgenticRLError:
        if isinstance(error, RemoteError) and error.remedy is Remedy.STOP:
            self._hopeless = error
        return error
