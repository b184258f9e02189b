"""The Tinker backend against the SDK's own types and signatures."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from agentic_rl.backend import backends
from agentic_rl.backend.tinker import TinkerBackend
from agentic_rl.errors import BackendError
from agentic_rl.protocol import protocols
from agentic_rl.training import Checkpoint
from tests.loopback import driving
from tests.loopback.driving import drive, sample, scores, update
from tests.loopback.server import Loopback
from tests.loopback.state import MODEL

tinker = pytest.importorskip("tinker")

KEY = "tml-planted-0123456789"


@pytest.fixture
def world(tokenizer_folder: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Tinker's clients over the small model, and a key."""
    from tests.loopback.tinker_sdk import FakeService, World, offered

    made = World(tokenizer_folder)
    monkeypatch.setenv("TINKER_API_KEY", KEY)
    monkeypatch.setattr(tinker, "ServiceClient", lambda base_url=None: FakeService(made))
    monkeypatch.setattr(tinker, "RestClient", lambda base_url=None: offered())
    return made


def build(**fields: Any) -> TinkerBackend:
    made = backends.build({"name": "tinker", "model": MODEL, "timeout": 20.0, **fields})
    assert isinstance(made, TinkerBackend)
    made.bind(protocols.build({"name": "tool_call"}).render)
    return made


async def two_updates(made: Any) -> list[float]:
    await made.refresh()
    await update(made, seed=1)
    await update(made, seed=2)
    return await scores(made)


def test_it_trains_the_weights_that_pytrio_trains(world: Any, service: Loopback) -> None:
    """One service adds up and the other divides; the loss's reduction holds on both."""
    ours = drive(build(), two_updates)
    assert world.closed == ["success"]
    assert ours == pytest.approx(drive(driving.backend(service.url), two_updates), abs=1e-5)


def test_save_load_and_resume(world: Any) -> None:
    async def first(made: TinkerBackend) -> tuple[Checkpoint, list[float]]:
        await made.refresh()
        await update(made, seed=1)
        saved = await made.save(driving.nowhere(), "update-1")
        await update(made, seed=2)
        return saved, await scores(made)

    async def second(made: TinkerBackend) -> list[float]:
        await made.load(saved, optimizer=True)
        await update(made, seed=2)
        return await scores(made)

    saved, expected = drive(build(), first)
    assert saved == Checkpoint(
        "update-1", "tinker://run/weights/update-1", "tinker://run/sampler_weights/update-1"
    )
    assert drive(build(), second) == pytest.approx(expected, abs=1e-9)


def test_a_failed_backward_is_redone_from_the_last_state(world: Any) -> None:
    expected = drive(build(), two_updates)

    async def play(made: TinkerBackend) -> tuple[int, list[float]]:
        await made.refresh()
        await update(made, seed=1)
        world.errors["forward_backward"] = [RuntimeError("the machine went away")]
        metrics = await update(made, seed=2)
        return metrics.trainer_rebuilt, await scores(made)

    rebuilt, found = drive(build(), play)
    assert rebuilt == 1
    assert found == pytest.approx(expected, abs=1e-9)


def test_cached_tokens_are_told_apart(world: Any) -> None:
    async def play(made: TinkerBackend) -> tuple[int, int, int]:
        completions = await sample(made)
        assert made.usage.sampled == sum(len(c.tokens) for c in completions)
        return made.usage.prefill, made.usage.cached, len(driving.prompt(made).tokens)

    prefill, cached, prompt = drive(build(), play)
    assert (prefill, cached) == (prompt - 3, 3)


def refusal(status: int) -> Exception:
    kinds = {401: "AuthenticationError", 402: "BillingError", 400: "BadRequestError"}
    response = httpx.Response(status, request=httpx.Request("POST", "https://tinker"))
    error: Exception = getattr(tinker, kinds[status])(f"no: {KEY}", response=response, body=None)
    return error


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "`tinker auth login`, or TINKER_API_KEY"),
        (402, "see to the account, then continue later with `agentic-rl resume`"),
        (400, r"Tinker failed at sampling \(BadRequestError\)"),
    ],
)
def test_errors_are_worded_without_the_key(world: Any, status: int, says: str) -> None:
    async def play(made: TinkerBackend) -> None:
        world.errors["sample"] = [refusal(status)]
        await sample(made)

    with pytest.raises(BackendError, match=says) as caught:
        drive(build(), play)
    assert KEY not in str(caught.value)
    assert world.closed == ["success"]


def test_a_model_that_is_not_offered(world: Any) -> None:
    async def play(made: TinkerBackend) -> None:
        raise AssertionError("the backend started")

    with pytest.raises(BackendError, match=rf"no model '{MODEL}x'.*Did you mean '{MODEL}'\?"):
        drive(build(model=f"{MODEL}x"), play)


def test_no_key_is_one_line(user_home: Path) -> None:
    with pytest.raises(BackendError, match="run `tinker auth login`, or set TINKER_API_KEY"):
        build()
