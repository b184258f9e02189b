"""Calls are bounded, and what hangs is named."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agentic_rl.watchdog import AbandonedError, StalledError, Watchdog


async def _under(watchdog: Watchdog, work: Awaitable[object]) -> None:
    """Runs `work` while the watchdog watches; whichever ends first ends both."""
    tasks = [asyncio.ensure_future(work), asyncio.create_task(watchdog.watch())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _call(watchdog: Watchdog, what: str, work: Callable[[], Awaitable[object]]) -> None:
    async with watchdog.doing(what):
        await work()


def test_a_call_that_never_answers_is_ended() -> None:
    watchdog = Watchdog(0.1)
    with pytest.raises(TimeoutError, match=r"^no answer for 0\.1 s$"):
        asyncio.run(_under(watchdog, _call(watchdog, "sampling x", asyncio.Event().wait)))


def test_a_call_that_answers_in_time_is_left_alone() -> None:
    watchdog = Watchdog(0.5)
    asyncio.run(_under(watchdog, _call(watchdog, "sampling x", lambda: asyncio.sleep(0.1))))


def test_an_error_passes_as_it_is() -> None:
    async def fail() -> None:
        raise TimeoutError("the service's own")

    watchdog = Watchdog(0.5)
    with pytest.raises(TimeoutError, match="the service's own"):
        asyncio.run(_under(watchdog, _call(watchdog, "sampling x", fail)))


def test_a_call_cancelled_from_within_is_an_error_and_no_cancellation() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(AbandonedError):
        asyncio.run(_call(Watchdog(1.0), "sampling x", give_up))


def test_our_own_cancellation_stays_one() -> None:
    async def run() -> None:
        task = asyncio.create_task(_call(Watchdog(1.0), "sampling x", asyncio.Event().wait))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_what_hangs_is_told_once_and_by_name() -> None:
    said: list[str] = []
    watchdog = Watchdog(0.4, said.append)
    names = [f"sampling turn {number} of game" for number in range(5)]

    async def work() -> None:
        calls = [asyncio.create_task(_call(watchdog, name, asyncio.Event().wait)) for name in names]
        await asyncio.sleep(0.3)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(_under(watchdog, work()))
    (line,) = said
    assert all(f"{name} for " in line for name in names[:3])
    assert line.endswith("; and 2 more")


def test_the_run_ends_where_two_calls_hang_again_and_again() -> None:
    watchdog = Watchdog(0.1)

    async def stubborn(what: str) -> None:
        while True:
            try:
                await _call(watchdog, what, asyncio.Event().wait)
            except TimeoutError:
                continue

    async def work() -> None:
        await asyncio.gather(stubborn("sampling a"), stubborn("sampling b"))

    with pytest.raises(StalledError, match=r"sampling a for .*rollout\.timeout"):
        asyncio.run(_under(watchdog, work()))


def test_one_call_that_hangs_while_others_are_answered_ends_no_run() -> None:
    watchdog, count = Watchdog(0.05), 0

    async def hang() -> None:
        nonlocal count
        while count < 6:
            try:
                await _call(watchdog, f"sampling {count}", asyncio.Event().wait)
            except TimeoutError:
                count += 1

    async def work() -> None:
        hanging = asyncio.create_task(hang())
        while not hanging.done():
            await _call(watchdog, "sampling other", lambda: asyncio.sleep(0.01))
        await hanging

    asyncio.run(_under(watchdog, work()))
    assert count == 6
