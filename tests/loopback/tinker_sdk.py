"""Tinker's clients without its service: the SDK's own types and signatures over the small model.

Each call is bound to the signature of the SDK's method of that name first, so that a keyword which
the SDK does not take fails here as it would there.
"""

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tinker
from tinker.lib.public_interfaces.sampling_client import SamplingClient
from tinker.lib.public_interfaces.service_client import ServiceClient
from tinker.lib.public_interfaces.training_client import TrainingClient
from transformers import AutoTokenizer

from tests.loopback import actor
from tests.loopback.model import Policy, Reader
from tests.loopback.state import MODEL, State


class World:
    """What outlives a session: checkpoints, and errors to raise by method name."""

    def __init__(self, folder: Path) -> None:
        reader = Reader(AutoTokenizer.from_pretrained(str(folder), local_files_only=True))
        self.state = State(str(folder), reader, {"max_seq_len": None})
        self.kept: dict[str, dict[str, Any]] = {}
        self.errors: dict[str, list[Exception]] = {}
        self.closed: list[str] = []

    def fails(self, name: str) -> None:
        if self.errors.get(name):
            raise self.errors[name].pop(0)


def _bound(real: type, name: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    signature = inspect.signature(inspect.unwrap(getattr(real, name)))
    return dict(signature.bind(None, *args, **kwargs).arguments)


def _later(work: Callable[[], Any]) -> Awaitable[Any]:
    async def run() -> Any:
        return work()

    return run()


class FakeService:
    def __init__(self, world: World) -> None:
        self._world = world

    def create_lora_training_client(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        _bound(ServiceClient, "create_lora_training_client", *args, **kwargs)
        return _later(lambda: FakeTrainer(self._world, Policy(self._world.state.reader.vocabulary)))

    def create_training_client_from_state(self, path: str) -> Awaitable[Any]:
        return _later(lambda: self._restored(path, optimizer=False))

    def create_training_client_from_state_with_optimizer(self, path: str) -> Awaitable[Any]:
        return _later(lambda: self._restored(path, optimizer=True))

    def create_sampling_client(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        asked = _bound(ServiceClient, "create_sampling_client", *args, **kwargs)

        def make() -> FakeSampler:
            policy = Policy(self._world.state.reader.vocabulary)
            if "model_path" in asked:
                policy.load(self._world.kept[asked["model_path"]], optimizer=False)
            return FakeSampler(self._world, policy)

        return _later(make)

    def close(self, *args: Any) -> Any:
        self._world.closed.append(_bound(ServiceClient, "close", *args)["status"])
        return SimpleNamespace(result=lambda: None)

    def _restored(self, path: str, *, optimizer: bool) -> "FakeTrainer":
        policy = Policy(self._world.state.reader.vocabulary)
        policy.load(self._world.kept[path], optimizer=optimizer)
        return FakeTrainer(self._world, policy)


class FakeTrainer:
    def __init__(self, world: World, policy: Policy) -> None:
        self._world, self._policy = world, policy

    def forward(self, *args: Any) -> Awaitable[Any]:
        return self._run("forward", args)

    def forward_backward(self, *args: Any) -> Awaitable[Any]:
        return self._run("forward_backward", args)

    def _run(self, name: str, args: tuple[Any, ...]) -> Awaitable[Any]:
        asked = _bound(TrainingClient, name, *args)
        samples = []
        for datum in asked["data"]:
            assert isinstance(datum, tinker.Datum)
            inputs = {key: value.tolist() for key, value in datum.loss_fn_inputs.items()}
            chunks = [{"tokens": list(datum.model_input.to_ints())}]
            targets = inputs.pop("target_tokens")
            samples.append({"model_input": {"chunks": chunks}, "target_ids": targets, **inputs})
        payload = {
            "data": samples,
            "loss": {"type": asked["loss_fn"], "config": asked["loss_fn_config"] or {}},
            "gradient_accumulation": {"total_active_tokens": 1},
        }

        def work() -> Any:
            self._world.fails(name)
            backward = name == "forward_backward"
            found, _ = actor._forward(self._world.state, self._policy, payload, backward=backward)
            outputs = [
                {
                    "logprobs": tinker.TensorData.from_numpy(
                        np.frombuffer(o["logprobs"]["data"], "<f4").astype(np.float32)
                    )
                }
                for o in found["loss_fn_outputs"]
            ]
            return SimpleNamespace(loss_fn_outputs=outputs, metrics={"loss:sum": 0.0})

        return _later(work)

    def optim_step(self, *args: Any) -> Awaitable[Any]:
        (params,) = args
        assert isinstance(params, tinker.AdamParams)
        return _later(lambda: SimpleNamespace(metrics=self._policy.adam(params.model_dump())))

    def save_state(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        name = _bound(TrainingClient, "save_state", *args, **kwargs)["name"]
        return _later(lambda: self._keep(f"tinker://run/weights/{name}", optimizer=True))

    def save_weights_for_sampler(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        name = _bound(TrainingClient, "save_weights_for_sampler", *args, **kwargs)["name"]
        return _later(lambda: self._keep(f"tinker://run/sampler_weights/{name}", optimizer=False))

    def save_weights_and_get_sampling_client(self) -> Awaitable[Any]:
        def make() -> FakeSampler:
            policy = Policy(self._world.state.reader.vocabulary)
            policy.load(self._policy.snapshot(optimizer=False), optimizer=False)
            return FakeSampler(self._world, policy)

        return _later(make)

    def _keep(self, path: str, *, optimizer: bool) -> Any:
        self._world.kept[path] = self._policy.snapshot(optimizer=optimizer)
        return SimpleNamespace(path=path)


class FakeSampler:
    def __init__(self, world: World, policy: Policy) -> None:
        self._world, self._policy = world, policy

    def get_tokenizer(self) -> Any:
        return self._world.state.reader.tokenizer

    def sample(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        asked = _bound(SamplingClient, "sample", *args, **kwargs)
        params, reader = asked["sampling_params"], self._world.state.reader

        def work() -> Any:
            self._world.fails("sample")
            replies = reader.replies(list(asked["prompt"].to_ints()))
            settings = {"max_tokens": params.max_tokens, "temperature": params.temperature}
            drawn = [
                actor._draw(
                    self._world.state,
                    self._policy,
                    replies,
                    settings,
                    np.random.default_rng([params.seed, k]),
                )
                for k in range(asked["num_samples"])
            ]
            sequences = [SimpleNamespace(**sequence) for sequence in drawn]
            return SimpleNamespace(sequences=sequences, prompt_cache_hit_tokens=3)

        return _later(work)

    def compute_logprobs(self, *args: Any) -> Awaitable[Any]:
        tokens = list(_bound(SamplingClient, "compute_logprobs", *args)["prompt"].to_ints())

        def work() -> list[float | None]:
            where = list(range(len(tokens) - 1))
            state = self._world.state
            values, _ = actor._score(state, self._policy, tokens[:-1], tokens[1:], where)
            return [None, *values.tolist()]

        return _later(work)


def offered() -> Any:
    """What `RestClient().get_server_capabilities()` answers."""
    model = SimpleNamespace(model_name=MODEL, max_context_length=4096)
    answer = SimpleNamespace(supported_models=[model])
    return SimpleNamespace(get_server_capabilities=lambda: SimpleNamespace(result=lambda: answer))
