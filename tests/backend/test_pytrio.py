"""What the PyTRIO backend sends, keeps and refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from omegaconf import OmegaConf

from agentic_rl.backend import backends
from agentic_rl.backend.pytrio import PytrioBackend
from agentic_rl.errors import BackendError, ConfigError
from agentic_rl.loss import losses
from agentic_rl.training import Checkpoint
from agentic_rl.types import Batch, Demonstration, Message, SamplingParams
from tests.loopback import driving
from tests.loopback.driving import backend, drive, sample, scores, update
from tests.loopback.server import Loopback
from tests.loopback.state import KEY, MODEL

CONF = Path(__file__).parents[2] / "conf" / "backend"


def sent(service: Loopback, event: str) -> list[dict[str, Any]]:
    """The payloads of events of one type, in order."""
    return [
        msgpack.unpackb(request["body"], raw=False)["payload"]
        for request in service.state.requests
        if request["event"] == event
    ]


@pytest.mark.parametrize("name", ["pytrio", "tinker"])
def test_yaml_equals_the_defaults(name: str) -> None:
    spec = OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"))
    assert isinstance(spec, dict)
    assert backends.build({str(k): v for k, v in spec.items()}) == backends.get(name)()


def test_one_update_is_one_forward_and_one_step_shifted_once(service: Loopback) -> None:
    async def play(made: PytrioBackend) -> Batch:
        completions = await sample(made)
        batch = driving.batch(made, completions)
        await made.update(batch, losses.build({"name": "ppo"}), driving.ADAM)
        return batch

    batch = drive(backend(service.url, canary_tokens=0), play)
    (payload,) = sent(service, "trainer.forward_backward")
    assert len(sent(service, "trainer.optimize_step")) == 1
    assert payload["loss"] == {
        "type": "ppo",
        "config": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
    }
    assert payload["gradient_accumulation"]["total_active_tokens"] == batch.tokens
    for datum, told in zip(batch.data, payload["data"], strict=True):
        tokens = told["model_input"]["chunks"][0]["tokens"]
        assert tokens == datum.tokens[:-1].tolist()
        start = int(np.flatnonzero(datum.loss_mask)[0])
        assert told["target_ids"][: start - 1] == [-100] * (start - 1)
        assert told["target_ids"][start - 1 :] == datum.tokens[start:].tolist()
        assert told["advantages"] == pytest.approx(datum.advantages[1:].tolist())
        assert told["logprobs"] == pytest.approx(datum.old_logprobs[1:].tolist(), rel=1e-6)


def test_counting_every_token_trains_the_same_weights(service: Loopback) -> None:
    """The reduction is the loss's, whichever tokens the service divides by."""

    async def play(made: PytrioBackend) -> tuple[list[float], float | None]:
        await made.refresh()
        metrics = await update(made, seed=1, reduction="trajectories")
        return await scores(made), metrics.grad_norm

    ignored, norm = drive(backend(service.url), play)
    counted, same = drive(backend(service.url, ignore_prompt=False), play)
    assert norm == pytest.approx(same, rel=1e-5)
    assert ignored == pytest.approx(counted, rel=1e-4)


def test_a_batch_beyond_the_limits_is_split_over_one_step(
    tokenizer_folder: Path, user_home: Path
) -> None:
    async def play(made: PytrioBackend) -> list[float]:
        await made.refresh()
        await update(made, seed=1)
        return await scores(made)

    limits = {"max_batch_size": 3, "max_tokens_per_request": 400, "max_seq_len": 300}
    with Loopback(tokenizer_folder, limits=limits) as service:
        split = drive(backend(service.url), play)
        assert len(sent(service, "trainer.forward_backward")) > 1
        assert len(sent(service, "trainer.optimize_step")) == 1
    with Loopback(tokenizer_folder) as service:
        assert split == pytest.approx(drive(backend(service.url), play), rel=1e-6)


def test_what_is_too_long_is_refused_before_it_is_sent(
    tokenizer_folder: Path, user_home: Path
) -> None:
    async def play(made: PytrioBackend) -> None:
        long = driving.prompt(made, driving.TEXT * 9)
        await made.sample(long, 1, SamplingParams(1.0, 1.0, 10, 0))

    limits = {"max_batch_size": 3, "max_tokens_per_request": 400, "max_seq_len": 300}
    with Loopback(tokenizer_folder, limits=limits) as service:
        with pytest.raises(BackendError, match=r"rollout\.max_trajectory_tokens=300 or less"):
            drive(backend(service.url), play)
        assert not service.asked("POST /actor/v1/sampling-runs")


def test_the_room_left_bounds_a_reply(tokenizer_folder: Path, user_home: Path) -> None:
    async def play(made: PytrioBackend) -> tuple[int, int]:
        prompt = driving.prompt(made)
        told = await made.sample(prompt, 1, SamplingParams(1.0, 1.0, 1000, 0))
        return len(prompt.tokens), len(told[0].tokens)

    limits = {"max_batch_size": 3, "max_tokens_per_request": 400, "max_seq_len": 70}
    with Loopback(tokenizer_folder, limits=limits) as service:
        prompt, reply = drive(backend(service.url, canary_tokens=0), play)
    assert 0 < reply <= 70 - prompt


def test_saved_weights_come_back_with_their_optimizer(service: Loopback) -> None:
    async def first(made: PytrioBackend) -> tuple[Checkpoint, list[float]]:
        await made.refresh()
        await update(made, seed=1)
        saved = await made.save(driving.nowhere(), "update-1")
        await update(made, seed=2)
        return saved, await scores(made)

    async def second(made: PytrioBackend) -> list[float]:
        await made.load(saved, optimizer=True)
        await update(made, seed=2)
        return await scores(made)

    saved, uninterrupted = drive(backend(service.url), first)
    assert drive(backend(service.url), second) == pytest.approx(uninterrupted, abs=1e-9)

    async def cold(made: PytrioBackend) -> list[float]:
        await made.load(saved, optimizer=False)
        await update(made, seed=2)
        return await scores(made)

    assert drive(backend(service.url), cold) != pytest.approx(uninterrupted, abs=1e-4)


def test_weights_of_a_sampler_score_but_do_not_train(service: Loopback) -> None:
    async def first(made: PytrioBackend) -> tuple[Checkpoint, list[float]]:
        await made.refresh()
        await update(made, seed=1)
        return await made.save(driving.nowhere(), "update-1"), await scores(made)

    saved, expected = drive(backend(service.url), first)
    alone = replace(saved, state=saved.sampler)
    service.state.requests.clear()

    async def second(made: PytrioBackend) -> list[float]:
        await made.load(alone, optimizer=False)
        found = await scores(made)
        assert not service.asked("POST /actor/v1/events")
        with pytest.raises(BackendError, match="weights of a sampler cannot be trained"):
            await made.refresh()
        return found

    assert drive(backend(service.url), second) == pytest.approx(expected, abs=1e-9)


def test_an_unknown_address_names_the_option(service: Loopback) -> None:
    async def play(made: PytrioBackend) -> None:
        await made.load(Checkpoint("x", "trio://no/weights/x", ""), optimizer=True)

    with pytest.raises(BackendError, match=r"loading trio://no/weights/x .*see checkpoint="):
        drive(backend(service.url), play)


def test_an_unknown_model_names_the_option(service: Loopback) -> None:
    async def play(made: PytrioBackend) -> None:
        raise AssertionError("the backend started")

    with pytest.raises(BackendError, match=r"model_not_found.*see backend\.model"):
        drive(backend(service.url, model=f"{MODEL}x"), play)


def test_imitation_makes_the_shown_action_likelier(service: Loopback) -> None:
    async def play(made: PytrioBackend) -> tuple[list[float], list[float]]:
        await made.refresh()
        before = await scores(made)
        shown = [Demonstration(driving.prompt(made), "look")]
        for _ in range(5):
            await made.imitate(shown, driving.ADAM)
        await made.refresh()
        return before, await scores(made)

    before, after = drive(backend(service.url), play)
    assert sum(after) > sum(before) + 0.5


def test_usage_is_what_the_service_billed(service: Loopback) -> None:
    async def play(made: PytrioBackend) -> tuple[int, int, int]:
        await update(made, seed=1)
        usage = made.usage
        return usage.prefill, usage.sampled, usage.trained

    billed = service.state.usage
    made = backend(service.url, canary_tokens=0)
    assert drive(made, play) == (billed["prefill"], billed["sampled"], billed["trained"])
    assert made.usage.sampled == billed["sampled"]


def test_an_unsupported_loss_is_refused(service: Loopback) -> None:
    class Other:
        name, reduction = "ppp", "tokens"

        def remote(self) -> tuple[str, dict[str, float]]:
            return "ppp", {}

    async def play(made: PytrioBackend) -> None:
        batch = driving.batch(made, await sample(made))
        await made.update(batch, Other(), driving.ADAM)  # type: ignore[arg-type]

    with pytest.raises(BackendError, match=r"PyTRIO has no loss 'ppp'\. Did you mean 'ppo'\?"):
        drive(backend(service.url), play)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"timeout": 0.0}, "timeout=0.0 is not above 0"),
        ({"max_in_flight": 0}, "max_in_flight=0 is not above 0"),
        ({"prices": {"sampeld": 1.0}}, "prices has no 'sampeld'. Did you mean 'sampled'?"),
    ],
)
def test_slips_in_the_fields(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        backends.build({"name": "pytrio", **fields})
    assert says in str(caught.value)


class TestAccount:
    """Where the key comes from, and where it may go."""

    def profile(self, home: Path, text: str, name: str = "config.toml") -> None:
        file = home / ".pytrio" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_none(self, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("PYTRIO_API_KEY")
        with pytest.raises(BackendError, match="run `trio login`, or set PYTRIO_API_KEY"):
            backend("http://127.0.0.1:1")

    def test_a_stored_key_goes_to_its_own_service_alone(
        self, user_home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PYTRIO_API_KEY")
        self.profile(user_home, f'api_key = "{KEY}"\n')
        with pytest.raises(BackendError, match="the stored PyTRIO key is not for") as caught:
            backend("http://127.0.0.1:1")
        assert KEY not in str(caught.value)

    def test_the_active_profile_is_read_and_left_alone(
        self, service: Loopback, user_home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PYTRIO_API_KEY")
        self.profile(user_home, 'active_env = "work"\nunknown = "kept"\n', "env.toml")
        text = f'api_key = "{KEY}"\nbase_url = "{service.url}"\nusername = "kept"\n'
        self.profile(user_home, text, "envs/work/config.toml")
        before = {p: (p.read_text(), p.stat().st_mtime_ns) for p in files(user_home)}

        async def play(made: PytrioBackend) -> int:
            return len(await sample(made))

        made = backends.build({"name": "pytrio", **driving.FAST})
        assert isinstance(made, PytrioBackend)
        made.bind(lambda action: action)
        assert drive(made, play) == 8
        assert {p: (p.read_text(), p.stat().st_mtime_ns) for p in files(user_home)} == before

    def test_a_broken_profile_says_so(
        self, user_home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PYTRIO_API_KEY")
        self.profile(user_home, "api_key = ")
        with pytest.raises(BackendError, match=r"cannot be read .*`trio login` writes it anew"):
            backend("http://127.0.0.1:1")

    def test_a_broken_profile_does_not_matter_where_none_is_needed(
        self, service: Loopback, user_home: Path
    ) -> None:
        self.profile(user_home, "api_key = ")

        async def play(made: PytrioBackend) -> int:
            return len(await sample(made))

        assert drive(backend(service.url), play) == 8

    def test_the_key_travels_encrypted(self, user_home: Path) -> None:
        with pytest.raises(BackendError, match="unencrypted: use an https address"):
            backend("http://example.org")


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_the_tokenizer_renders_and_reads_back(service: Loopback) -> None:
    async def play(made: PytrioBackend) -> None:
        tokenizer = made.tokenizer
        assert tokenizer is not None
        text = tokenizer.render([Message("user", "hi\n there")], (), True, {})
        assert text == "<|im_start|>user\nhi\n there<|im_end|>\n<|im_start|>assistant\n"
        assert tokenizer.decode(tokenizer.encode(text)) == text
        completion = (await sample(made, n=1))[0]
        assert completion.stop_reason == "stop"
        assert "<|im_end|>" not in completion.text
        assert tokenizer.decode(completion.tokens) == f"{completion.text}<|im_end|>"

    drive(backend(service.url), play)
