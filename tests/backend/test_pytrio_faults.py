"""Every fault that a service can make: what is sent again, what is redone, what the user reads."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentic_rl.backend.pytrio import PytrioBackend
from agentic_rl.errors import AgenticRLError, BackendError
from agentic_rl.loss import losses
from tests.loopback import driving
from tests.loopback.driving import backend, drive, sample, scores, update
from tests.loopback.server import Loopback
from tests.loopback.state import KEY, Fault

SUBMIT = "POST /actor/v1/events"
POLL = "GET /actor/v1/events"
SAMPLE = "POST /actor/v1/sampling-runs"
RENEW = "POST /api/openapi/v1/training-runs"
BACKWARD, STEP, STATE = "trainer.forward_backward", "trainer.optimize_step", "trainer.save_state"


def http(match: str, status: int, code: str, times: int = 1, event: str = "") -> Fault:
    return Fault(match, "http", status=status, code=code, times=times, event=event)


@dataclass(frozen=True)
class Case:
    """`rebuilt` None: the update fails and the user reads `says`."""

    faults: tuple[Fault, ...]
    rebuilt: int | None = 0
    says: str = ""
    steps: int = 1
    fields: dict[str, Any] = field(default_factory=dict)


UPDATES = {
    "500 once on submit": Case((http(SUBMIT, 500, "internal_error", event=BACKWARD),)),
    "503 once on poll": Case((http(POLL, 503, "service_unavailable"),)),
    "429 once on submit": Case((http(SUBMIT, 429, "too_many_requests", event=STEP),)),
    "dropped before acting": Case((Fault(SUBMIT, "drop", event=BACKWARD),)),
    "dropped after acting on the gradients": Case((Fault(SUBMIT, "drop_after", event=BACKWARD),)),
    "dropped after acting on the step": Case((Fault(SUBMIT, "drop_after", event=STEP),)),
    "token expired at submit": Case((Fault(SUBMIT, "expire", event=STEP),)),
    "token expired at poll": Case((Fault(POLL, "expire"),)),
    "slow, but in time": Case((Fault(SUBMIT, "delay", seconds=1.0, event=BACKWARD),)),
    "500 for longer than the SDK tries": Case(
        (http(SUBMIT, 500, "internal_error", times=7, event=BACKWARD),), rebuilt=1
    ),
    "gradients fail": Case((Fault("EVENT", "event_fail", event=BACKWARD),), rebuilt=1),
    "the step fails": Case((Fault("EVENT", "event_fail", event=STEP),), rebuilt=1),
    "the state after the step is not saved": Case(
        (Fault("EVENT", "event_fail", event=STATE),), rebuilt=1, steps=2
    ),
    "the result is forgotten": Case((http(POLL, 404, "event_not_found"),), rebuilt=1),
    "gradients fail twice": Case(
        (Fault("EVENT", "event_fail", times=2, event=BACKWARD),),
        rebuilt=None,
        says=r"PyTRIO failed at an update \(internal_error\).*agentic-rl resume",
        steps=0,
    ),
    "refused": Case(
        (http(SUBMIT, 400, "validation_failed", event=BACKWARD),),
        rebuilt=None,
        says=r"PyTRIO failed at an update \(validation_failed, 400\)",
        steps=0,
    ),
    "no balance": Case(
        (http(SUBMIT, 402, "billing_insufficient_balance", event=BACKWARD),),
        rebuilt=None,
        says="top up the account, then continue later with `agentic-rl resume`",
        steps=0,
    ),
    "slower than the timeout, twice": Case(
        (Fault(SUBMIT, "delay", seconds=3.0, times=2, event=BACKWARD),),
        rebuilt=None,
        says=r"did not finish an update within 1 s: raise backend\.timeout",
        steps=0,
        fields={"timeout": 1.0},
    ),
    "no saved state to redo from": Case(
        (Fault("EVENT", "event_fail", event=BACKWARD),),
        rebuilt=None,
        says=r"lies 1 updates back.*agentic-rl resume",
        steps=0,
        fields={"keep_state_every": 0},
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_under_fault(service: Loopback, undisturbed: list[float], name: str) -> None:
    """The weights afterwards are those of a run without fault, or the user reads one line."""
    case = UPDATES[name]

    async def play(made: PytrioBackend) -> tuple[list[float], int | None, str]:
        await made.refresh()
        await update(made, seed=1)
        service.state.faults.extend(case.faults)
        service.state.executed.clear()
        try:
            metrics = await update(made, seed=2)
        except BackendError as error:
            return [], None, str(error)
        return await scores(made), metrics.trainer_rebuilt, ""

    found, rebuilt, said = drive(backend(service.url, **case.fields), play)
    assert (rebuilt, bool(said)) == (case.rebuilt, case.rebuilt is None)
    assert service.state.executed.count(STEP) == case.steps
    assert set(service.state.sessions.values()) == {"ENDED"}
    if case.rebuilt is None:
        assert "\n" not in said
        assert_matches(case.says, said)
    else:
        assert found == pytest.approx(undisturbed, abs=1e-9)


def assert_matches(pattern: str, text: str) -> None:
    assert re.search(pattern, text), text


@pytest.fixture
def undisturbed(service: Loopback) -> list[float]:
    """The scores after the same two updates, with nothing going wrong."""
    if not _UNDISTURBED:

        async def play(made: PytrioBackend) -> list[float]:
            await made.refresh()
            await update(made, seed=1)
            await update(made, seed=2)
            return await scores(made)

        _UNDISTURBED.extend(drive(backend(service.url), play))
    return _UNDISTURBED


_UNDISTURBED: list[float] = []


SAMPLES = {
    "503 once": (http(SAMPLE, 503, "service_unavailable"), 2, ""),
    "429 once": (http(SAMPLE, 429, "too_many_requests"), 2, ""),
    "dropped before acting": (Fault(SAMPLE, "drop"), 2, ""),
    "dropped after acting": (Fault(SAMPLE, "drop_after"), 2, ""),
    "half a body": (Fault(SAMPLE, "truncate"), 2, ""),
    "an empty answer": (Fault(SAMPLE, "empty"), 2, ""),
    "token expired": (Fault(SAMPLE, "expire"), 2, ""),
    "half a body, for ever": (
        Fault(SAMPLE, "truncate", times=99),
        3,
        r"PyTRIO failed at sampling \(actor\.invalid_response",
    ),
    "an empty answer, for ever": (Fault(SAMPLE, "empty", times=99), 3, "answered 0 of 8 samples"),
    "refused": (http(SAMPLE, 400, "validation_failed"), 1, r"\(validation_failed, 400\)"),
    "no balance": (http(SAMPLE, 402, "billing_insufficient_balance"), 1, "top up the account"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sampling_under_fault(service: Loopback, name: str) -> None:
    """What was lost is asked again; what was refused is not."""
    fault, requests, says = SAMPLES[name]

    async def play(made: PytrioBackend) -> tuple[list[Any], str]:
        before = await sample(made, seed=3)
        service.state.requests.clear()
        service.state.faults.append(fault)
        try:
            after = await sample(made, seed=3)
        except BackendError as error:
            return [], str(error)
        assert after == before
        return after, ""

    completions, said = drive(backend(service.url), play)
    assert len(service.asked(SAMPLE)) == requests
    assert bool(completions) == (not says)
    assert_matches(says, said)


def test_after_an_empty_balance_nothing_more_is_sent(service: Loopback) -> None:
    async def play(made: PytrioBackend) -> int:
        service.state.faults.append(http(SAMPLE, 402, "billing_insufficient_balance"))
        for _ in range(3):
            with pytest.raises(BackendError, match="top up the account"):
                await sample(made)
        return len(service.asked(SAMPLE))

    assert drive(backend(service.url), play) == 1


STARTS = {
    "wrong key": (
        http("GET /api/openapi/v1/api-key", 401, "unauthorized"),
        "run `trio login`, or set PYTRIO_API_KEY",
    ),
    "no balance": (
        http("POST /api/openapi/v1/service-sessions/", 402, "billing_insufficient_balance"),
        "top up the account",
    ),
    "no service": (
        http("GET /api/openapi/v1/api-key", 503, "service_unavailable", times=99),
        r"PyTRIO failed at opening a session \(service_unavailable, 503\)",
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_under_fault_is_one_line(service: Loopback, name: str) -> None:
    fault, says = STARTS[name]
    service.state.faults.append(fault)

    async def play(made: PytrioBackend) -> None:
        raise AssertionError("the backend started")

    with pytest.raises(BackendError, match=says) as caught:
        drive(backend(service.url), play)
    assert "\n" not in str(caught.value)
    assert not service.asked(SAMPLE)


def test_no_capacity_is_waited_for_and_then_said(service: Loopback) -> None:
    full = http("POST /api/openapi/v1/service-sessions/", 429, "actor_capacity_exceeded", times=99)
    full.skip = 1

    async def play(made: PytrioBackend) -> None:
        service.state.faults.append(full)
        await made.refresh()

    with pytest.raises(
        BackendError, match=r"did not finish making a trainer within 2 s|no machine"
    ):
        drive(backend(service.url, timeout=2.0), play)


def test_a_service_that_forgets_everything(service: Loopback) -> None:
    """The trainer is made again from its last state; the sampler that died says so."""

    async def play(made: PytrioBackend) -> int:
        await made.refresh()
        completions = await sample(made)
        service.state.forget()
        metrics = await made.update(
            driving.batch(made, completions), losses.build({"name": "ppo"}), driving.ADAM
        )
        await made.refresh()
        await sample(made)
        return metrics.trainer_rebuilt

    assert drive(backend(service.url), play) == 1


def test_a_sampler_with_other_weights_is_noticed_before_a_step(service: Loopback) -> None:
    service.state.stale = True

    async def play(made: PytrioBackend) -> None:
        await made.refresh()
        for seed in range(6):
            await update(made, seed=seed)

    with pytest.raises(BackendError, match=r"trainer and sampler disagree .*canary_mean_gap=0\.01"):
        drive(backend(service.url, canary_mean_gap=0.01), play)


def test_updates_that_change_nothing_are_noticed(service: Loopback) -> None:
    service.state.frozen = True

    async def play(made: PytrioBackend) -> None:
        await made.refresh()
        for seed in range(9):
            await update(made, seed=seed)

    with pytest.raises(BackendError, match="3 updates in a row changed nothing"):
        drive(backend(service.url), play)
    assert service.state.executed.count(STEP) == 3


@pytest.mark.slow
def test_a_vanished_service_lets_go_within_ten_seconds(
    service: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> float:
        made = backend(service.url)
        await made.start()
        await made.refresh()
        service.vanish()
        started = time.monotonic()
        with pytest.raises(BackendError, match="cannot be reached while sampling"):
            await sample(made)
        await made.close()
        return time.monotonic() - started

    assert asyncio.run(play()) < 10
    assert "did not confirm that its session is closed" in caplog.text
    assert KEY not in caplog.text


INTERRUPTED = """
import asyncio, signal, sys
from tests.loopback.driving import backend, sample

async def main():
    made = backend(sys.argv[1], sampling_timeout=60.0)
    try:
        await made.start()
        await made.refresh()
        print("started", flush=True)
        while True:
            await asyncio.gather(*(sample(made, seed=seed) for seed in range(40)))
    finally:
        await made.close()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("gone", [False, True])
def test_ctrl_c_is_out_within_ten_seconds(service: Loopback, gone: bool) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, service.url],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        if gone:
            service.vanish()
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert time.monotonic() - started < 10
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert ("did not confirm that its session is closed" in errors) == gone
    assert gone or set(service.state.sessions.values()) == {"ENDED"}
    assert KEY not in errors


def test_errors_are_ours() -> None:
    assert issubclass(BackendError, AgenticRLError)
