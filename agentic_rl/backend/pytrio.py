"""PyTRIO: LoRA training and sampling of open models as a service (SDK 0.2.9)."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend import backends
from agentic_rl.backend.remote import pytrio_errors
from agentic_rl.backend.remote.backend import CLOSING_SECONDS, RemoteBackend
from agentic_rl.backend.remote.datums import Divisor
from agentic_rl.backend.remote.guard import in_thread
from agentic_rl.backend.remote.pytrio_sdk import account, import_sdk
from agentic_rl.backend.remote.service import (
    Account,
    RemoteDatum,
    RemoteError,
    Reply,
    Sampled,
    Service,
    Settings,
)
from agentic_rl.cache import cache_folder
from agentic_rl.training import Adam
from agentic_rl.types import SamplingParams

_LOSSES = frozenset({"cross_entropy", "importance_sampling", "ppo", "cispo", "dro"})
_IGNORED = -100
_TEMPORARY_SECONDS = 24 * 3600


@backends.register("pytrio")
@dataclass
class PytrioBackend(RemoteBackend):
    """A remote LoRA adapter. The key comes from `trio login` or PYTRIO_API_KEY, never from YAML.

    `ignore_prompt` marks what was not sampled as ignored, so that the service divides by sampled
    tokens alone; without it those tokens have advantage 0 and are counted.
    """

    model: str = "Qwen/Qwen3.5-4B"
    retry_seconds: float = 120.0
    max_in_flight: int = 64
    ignore_prompt: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._above_zero("retry_seconds", "max_in_flight")

    @property
    def _losses(self) -> frozenset[str]:
        return _LOSSES

    @property
    def _divisor(self) -> Divisor:
        return Divisor.SAMPLED if self.ignore_prompt else Divisor.ALL

    def _connect(self) -> Service:
        return PytrioService(self, account(self.base_url))


class PytrioService:
    """One session; the SDK is imported when it opens."""

    name = "PyTRIO"

    def __init__(self, options: PytrioBackend, account: Account) -> None:
        self._options = options
        self._account = account
        self._client: Any = None
        self._any: Any = None

    def open(self) -> None:
        sdk = import_sdk()
        options = self._options
        windows = dict.fromkeys(
            (
                "training_retry_timeout_seconds",
                "control_retry_timeout_seconds",
                "sampling_retry_timeout_seconds",
            ),
            options.retry_seconds,
        )
        sdk.configure(
            base_url=self._account.base_url,
            log_level="ERROR",
            sampling_timeout_seconds=max(1, round(options.sampling_timeout)),
            sampling_request_max_in_flight=options.max_in_flight,
            sampling_request_queue_capacity=4 * options.max_in_flight,
            actor_capacity_wait_timeout_seconds=options.timeout,
            retry_initial_delay_seconds=min(1.0, options.retry_seconds / 20),
            **windows,
        )
        sdk.configure_observability(enabled=False)
        client = sdk.ServiceClient(api_key=self._account.key)
        self._client = client
        wanted = self._account.base_url
        if wanted and not wanted.rstrip("/").startswith(client.user_info.base_url.rstrip("/")):
            raise RemoteError(f"the SDK went to {client.user_info.base_url} instead of {wanted}")

    async def trainer(self, state: str, *, optimizer: bool) -> "PytrioTrainer":
        options = self._options
        if state:
            make = (
                self._client.create_training_client_from_state_with_optimizer_async
                if optimizer
                else self._client.create_training_client_from_state_async
            )
            client = await make(state)
        else:
            client = await self._client.create_lora_training_client_async(
                base_model=options.model,
                rank=options.lora_rank,
                seed=options.seed,
                train_mlp=options.train_mlp,
                train_attn=options.train_attn,
                train_unembed=options.train_unembed,
            )
        return PytrioTrainer(client, options.ignore_prompt)

    async def sampler(self, address: str) -> "PytrioSampler":
        client = await self._client.create_sampling_client_async(
            base_model=self._options.model, model_path=address or None
        )
        self._any = client
        return PytrioSampler(client)

    def tokenizer(self) -> Any:
        # Without torch, transformers tells every user so; a tokenizer needs none.
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
        os.environ.setdefault("MODELSCOPE_CACHE", str(cache_folder() / "modelscope"))
        return self._any.get_tokenizer()

    def close(self) -> None:
        client, self._client = self._client, None
        runtime = getattr(client, "_runtime", None)
        if runtime is None:
            return
        # The SDK has no public close, and by default waits 15 minutes for a service that is gone.
        runtime.configuration.control_retry_timeout_seconds = CLOSING_SECONDS / 3
        owner = getattr(runtime, "_service_session_owner", None)
        try:
            if owner is not None:
                runtime.event_loop.run_sync(owner.aclose())
        finally:
            runtime.shutdown()

    def word(self, error: Exception, doing: str) -> RemoteError:
        where = self._account.base_url or "PyTRIO"
        return pytrio_errors.word(error, doing, where, self._account.key)


class PytrioSampler:
    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def max_tokens(self) -> int | None:
        limit: int | None = self._client._limits.max_seq_len
        return limit

    async def sample(self, tokens: Sequence[int], n: int, params: SamplingParams) -> Reply:
        import pytrio

        answer = await self._client.sample_async(
            pytrio.ModelInput.from_ints(list(tokens)),
            num_samples=n,
            sampling_params=pytrio.SamplingParams(
                max_tokens=params.max_tokens,
                temperature=params.temperature,
                top_p=params.top_p,
                seed=params.seed,
            ),
            return_text=False,
        )
        sequences = [
            Sampled(tuple(s.tokens), tuple(s.logprobs), s.stop_reason != "length")
            for s in answer.sequences
        ]
        return Reply(sequences, prefill=answer.input_tokens, sampled=answer.output_tokens)

    async def logprobs(self, tokens: Sequence[int]) -> list[float | None]:
        import pytrio

        values: list[float | None] = await self._client.compute_logprobs_async(
            pytrio.ModelInput.from_ints(list(tokens))
        )
        return values


class PytrioTrainer:
    """Futures are awaited one by one: a step is sent only when its gradients are there."""

    def __init__(self, client: Any, ignore_prompt: bool) -> None:
        self._client = client
        self._ignore_prompt = ignore_prompt

    @property
    def max_tokens(self) -> int | None:
        limits = self._client._limits
        bounds = [n for n in (limits.max_seq_len, limits.max_tokens_per_request) if n is not None]
        return min(bounds, default=None)

    async def forward(
        self, data: Sequence[RemoteDatum], loss: str, settings: Settings, *, backward: bool
    ) -> list[NDArray[np.float64]]:
        # The first call of a trainer loads the tokenizer; here it blocks nobody.
        await in_thread(lambda: self._client._tokenizer_vocab_size)
        call = self._client.forward_backward_async if backward else self._client.forward_async
        future = await call([self._datum(datum, loss) for datum in data], loss, dict(settings))
        output = await future
        return [
            np.asarray(tensors["logprobs"].tolist(), np.float64)
            for tensors in output.loss_fn_outputs
        ]

    async def step(self, optim: Adam) -> dict[str, float]:
        import pytrio

        future = await self._client.optim_step_async(
            pytrio.AdamParams(
                learning_rate=optim.lr,
                beta1=optim.beta1,
                beta2=optim.beta2,
                eps=optim.eps,
                weight_decay=optim.weight_decay,
                grad_clip_norm=optim.grad_clip_norm,
            )
        )
        answer = await future
        return {name: float(value) for name, value in (answer.metrics or {}).items()}

    async def sampler(self) -> PytrioSampler:
        return PytrioSampler(await self._client.save_weights_and_get_sampling_client_async())

    async def save_state(self, name: str, *, temporary: bool) -> str:
        seconds = _TEMPORARY_SECONDS if temporary else None
        saved = await (
            await self._client.save_state_async(name, ttl_seconds=seconds, overwrite=True)
        )
        return str(saved.path)

    async def save_weights(self, name: str) -> str:
        saved = await (await self._client.save_weights_for_sampler_async(name))
        return str(saved.path)

    def _datum(self, datum: RemoteDatum, loss: str) -> Any:
        import pytrio

        hidden = _IGNORED if self._ignore_prompt else datum.targets
        inputs = {"target_tokens": np.where(datum.mask > 0, datum.targets, hidden)}
        if loss == "cross_entropy":
            inputs["weights"] = datum.mask.astype(np.float32)
        else:
            inputs["logprobs"] = datum.logprobs.astype(np.float32)
            inputs["advantages"] = datum.advantages.astype(np.float32)
        return pytrio.Datum(
            model_input=pytrio.ModelInput.from_ints(datum.tokens), loss_fn_inputs=inputs
        )
