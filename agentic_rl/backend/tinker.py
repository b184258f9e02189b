"""Tinker: the same duties as PyTRIO's backend, with the verbs of Tinker's SDK (0.38)."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend import backends
from agentic_rl.backend.remote.backend import RemoteBackend
from agentic_rl.backend.remote.datums import Divisor
from agentic_rl.backend.remote.service import (
    Remedy,
    RemoteDatum,
    RemoteError,
    Reply,
    Sampled,
    Service,
    Settings,
)
from agentic_rl.cache import cache_folder
from agentic_rl.errors import BackendError, did_you_mean
from agentic_rl.training import Adam
from agentic_rl.types import SamplingParams

_LOSSES = frozenset({"cross_entropy", "importance_sampling", "ppo", "cispo", "dro"})
_TEMPORARY_SECONDS = 24 * 3600
_LATER = "continue later with `agentic-rl resume`"


@backends.register("tinker")
@dataclass
class TinkerBackend(RemoteBackend):
    """A remote LoRA adapter. The key comes from `tinker auth login` or TINKER_API_KEY.

    Tinker adds token losses up; the loss's own reduction is sent inside the advantages.
    """

    model: str = "Qwen/Qwen3.5-4B"

    @property
    def _losses(self) -> frozenset[str]:
        return _LOSSES

    @property
    def _divisor(self) -> Divisor:
        return Divisor.NONE

    def _connect(self) -> Service:
        stored = Path.home() / ".tinker" / "credentials.json"
        named = any(os.environ.get(f"TINKER_{name}") for name in ("API_KEY", "CREDENTIAL_CMD"))
        if not named and not stored.is_file():
            raise BackendError(
                "no Tinker key: run `tinker auth login`, or set TINKER_API_KEY"
                " (backend=linear needs none)"
            )
        return TinkerService(self)


class TinkerService:
    """One session; the SDK is imported when it opens, and keeps the key to itself."""

    name = "Tinker"

    def __init__(self, options: TinkerBackend) -> None:
        self._options = options
        self._client: Any = None
        self._any: Any = None
        self._context: int | None = None

    def open(self) -> None:
        try:
            import tinker
        except ImportError as error:
            raise BackendError(
                "backend=tinker needs Tinker's SDK: pip install 'agentic-rl[tinker]'"
            ) from error
        url = self._options.base_url
        offered = tinker.RestClient(base_url=url).get_server_capabilities().result()
        models = {m.model_name: m.max_context_length for m in offered.supported_models}
        wanted = self._options.model
        if wanted not in models:
            near = did_you_mean(wanted, [name for name in models if name])
            raise RemoteError(f"Tinker offers no model '{wanted}' (backend.model).{near}")
        self._context = models[wanted]
        self._client = tinker.ServiceClient(base_url=url)

    async def trainer(self, state: str, *, optimizer: bool) -> "TinkerTrainer":
        options = self._options
        if state:
            make = (
                self._client.create_training_client_from_state_with_optimizer
                if optimizer
                else self._client.create_training_client_from_state
            )
            return TinkerTrainer(await make(state), self._context)
        client = await self._client.create_lora_training_client(
            base_model=options.model,
            rank=options.lora_rank,
            seed=options.seed,
            train_mlp=options.train_mlp,
            train_attn=options.train_attn,
            train_unembed=options.train_unembed,
        )
        return TinkerTrainer(client, self._context)

    async def sampler(self, address: str) -> "TinkerSampler":
        source = {"model_path": address} if address else {"base_model": self._options.model}
        client = await self._client.create_sampling_client(**source)
        self._any = client
        return TinkerSampler(client, self._context)

    def tokenizer(self) -> Any:
        # Without torch, transformers tells every user so; a tokenizer needs none.
        os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
        os.environ.setdefault("HF_HOME", str(cache_folder() / "huggingface"))
        return self._any.get_tokenizer()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close("success").result()

    def word(self, error: Exception, doing: str) -> RemoteError:
        status = int(getattr(error, "status_code", 0) or 0)
        told = f"Tinker failed at {doing} ({type(error).__name__}): {_line(error)}"
        key = os.environ.get("TINKER_API_KEY")
        told = told.replace(key, "***") if key else told
        if doing == "loading the tokenizer":
            return RemoteError(f"{told}; the tokenizer comes from Hugging Face")
        if status == 401:
            return RemoteError(f"{told}; `tinker auth login`, or TINKER_API_KEY", Remedy.STOP)
        if status in (402, 403):
            return RemoteError(f"{told}; see to the account, then {_LATER}", Remedy.STOP)
        if status in (400, 404, 409, 422) or isinstance(error, ValueError | TypeError):
            return RemoteError(told)
        return RemoteError(f"{told}; {_LATER}", Remedy.REBUILD)


class TinkerSampler:
    def __init__(self, client: Any, context: int | None) -> None:
        self._client = client
        self.max_tokens = context

    async def sample(self, tokens: Sequence[int], n: int, params: SamplingParams) -> Reply:
        import tinker

        answer = await self._client.sample(
            prompt=tinker.ModelInput.from_ints(list(tokens)),
            num_samples=n,
            sampling_params=tinker.SamplingParams(
                max_tokens=params.max_tokens,
                temperature=params.temperature,
                top_p=params.top_p,
                seed=params.seed,
            ),
        )
        sequences = [
            Sampled(tuple(s.tokens), tuple(s.logprobs or ()), s.stop_reason != "length")
            for s in answer.sequences
        ]
        cached = int(answer.prompt_cache_hit_tokens)
        return Reply(sequences, prefill=len(tokens) - cached, cached=cached)

    async def logprobs(self, tokens: Sequence[int]) -> list[float | None]:
        import tinker

        values: list[float | None] = await self._client.compute_logprobs(
            tinker.ModelInput.from_ints(list(tokens))
        )
        return values


class TinkerTrainer:
    def __init__(self, client: Any, context: int | None) -> None:
        self._client = client
        self.max_tokens = context

    async def forward(
        self, data: Sequence[RemoteDatum], loss: str, settings: Settings, *, backward: bool
    ) -> list[NDArray[np.float64]]:
        call = self._client.forward_backward if backward else self._client.forward
        output = await call([_datum(datum, loss) for datum in data], loss, dict(settings) or None)
        return [
            np.asarray(tensors["logprobs"].tolist(), np.float64)
            for tensors in output.loss_fn_outputs
        ]

    async def step(self, optim: Adam) -> dict[str, float]:
        import tinker

        answer = await self._client.optim_step(
            tinker.AdamParams(
                learning_rate=optim.lr,
                beta1=optim.beta1,
                beta2=optim.beta2,
                eps=optim.eps,
                weight_decay=optim.weight_decay,
                grad_clip_norm=optim.grad_clip_norm,
            )
        )
        return {name: float(value) for name, value in (answer.metrics or {}).items()}

    async def sampler(self) -> TinkerSampler:
        client = await self._client.save_weights_and_get_sampling_client()
        return TinkerSampler(client, self.max_tokens)

    async def save_state(self, name: str, *, temporary: bool) -> str:
        seconds = _TEMPORARY_SECONDS if temporary else None
        saved = await self._client.save_state(name, ttl_seconds=seconds, overwrite=True)
        return str(saved.path)

    async def save_weights(self, name: str) -> str:
        return str((await self._client.save_weights_for_sampler(name)).path)


def _datum(datum: RemoteDatum, loss: str) -> Any:
    """What was not sampled has weight or advantage 0: Tinker knows no ignored target."""
    import tinker

    inputs: dict[str, Any] = {"target_tokens": datum.targets}
    if loss == "cross_entropy":
        inputs["weights"] = datum.mask.astype(np.float32)
    else:
        inputs["logprobs"] = datum.logprobs.astype(np.float32)
        inputs["advantages"] = datum.advantages.astype(np.float32)
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(datum.tokens), loss_fn_inputs=inputs
    )


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0].rstrip(".")
