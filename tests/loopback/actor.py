"""The actor plane: training events in order, and sampling."""

import time
from typing import Any

import numpy as np

from tests.loopback.model import Policy, token_loss
from tests.loopback.state import Run, ServiceError, State

_IGNORED = -100
_LONGEST_WAIT = 20.0
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "train_tokens": 0}


def submit(run: Run, event: dict[str, Any]) -> dict[str, Any]:
    """Accepts the next event of a run; one already there is never executed again."""
    metadata = event["metadata"]
    if event["version"] != 1 or metadata["run_id"] != run.cuid:
        raise ServiceError(400, "validation_failed", "bad envelope")
    with run.changed:
        if event["event_id"] in run.events:
            raise ServiceError(409, "event_exists", event["event_id"])
        if metadata["index"] != run.index:
            raise ServiceError(409, "event_index_mismatch", f"expected {run.index}")
        run.index += 1
        run.events[event["event_id"]] = _envelope(event, "accepted")
        run.log.append({"type": event["type"], "payload": event["payload"]})
        run.queue.append(event)
        run.changed.notify_all()
        return dict(run.events[event["event_id"]])


def poll(run: Run, event_id: str, wait: float) -> dict[str, Any]:
    until = time.monotonic() + min(wait, _LONGEST_WAIT)
    with run.changed:
        while True:
            event = run.events.get(event_id)
            if event is None:
                raise ServiceError(404, "event_not_found", event_id)
            left = until - time.monotonic()
            if event["status"] in ("succeeded", "failed") or left <= 0:
                return dict(event)
            run.changed.wait(left)


def work(state: State, run: Run) -> None:
    """Executes a run's events one after another."""
    while not state.stopping:
        with run.changed:
            if not run.queue:
                run.changed.wait(0.2)
                continue
            event = run.queue.popleft()
        time.sleep(state.event_seconds)
        done = _execute_safely(state, run, event)
        with run.changed:
            run.events[event["event_id"]] = done
            run.changed.notify_all()


def _execute_safely(state: State, run: Run, event: dict[str, Any]) -> dict[str, Any]:
    try:
        if state.fault("EVENT", event["type"]):
            raise ServiceError(500, "internal_error", "an injected failure")
        result, usage = _execute(state, run, event)
    except ServiceError as error:
        failure = {"code": error.code, "message": error.message}
        return {**_envelope(event, "failed"), "error": failure, "usage": _NO_USAGE}
    state.executed.append(event["type"])
    return {**_envelope(event, "succeeded"), "result": result, "usage": usage}


def _envelope(event: dict[str, Any], status: str) -> dict[str, Any]:
    return {
        "version": 1,
        "event_id": event["event_id"],
        "type": event["type"],
        "status": status,
    }


def _execute(
    state: State, run: Run, event: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, int]]:
    kind, payload = event["type"], event["payload"]
    if kind == "trainer.init_run":
        if payload.get("checkpoint_uri"):
            kept = state.checkpoint(payload["checkpoint_uri"], training=True)["kept"]
            run.policy.load(kept, optimizer=payload["load_optimizer"])
        run.initialized = True
        return {}, _NO_USAGE
    if not run.initialized:
        raise ServiceError(409, "run_not_initialized", run.cuid)
    if kind in ("trainer.forward", "trainer.forward_backward"):
        return _forward(state, run.policy, payload, backward=kind.endswith("backward"))
    if kind == "trainer.optimize_step":
        if state.frozen:
            return {"metrics": {"grad_norm": 1.0}}, _NO_USAGE
        return {"metrics": run.policy.adam(payload["adam_params"])}, _NO_USAGE
    if kind in ("trainer.save_state", "trainer.save_weights"):
        return _save(state, run, payload, training=kind.endswith("state")), _NO_USAGE
    raise ServiceError(400, "validation_failed", kind)


def _save(state: State, run: Run, payload: dict[str, Any], *, training: bool) -> dict[str, Any]:
    room = "weights" if training else "sampler_weights"
    uri = f"trio://{run.cuid}/{room}/{payload['name']}"
    if uri in state.checkpoints and not payload.get("overwrite"):
        raise ServiceError(409, "checkpoint_exists", uri)
    kept = run.policy.snapshot(optimizer=training)
    state.checkpoints[uri] = {"kept": kept, "spec": dict(run.spec), "training": training}
    size = sum(part.nbytes for part in kept.values() if isinstance(part, np.ndarray))
    return {"checkpoint": {"uri": uri, "size_bytes": size, "model_id": state.tokenizer_folder}}


def _forward(
    state: State, policy: Policy, payload: dict[str, Any], *, backward: bool
) -> tuple[dict[str, Any], dict[str, int]]:
    """Losses over the targets that are not ignored, divided by their count in the whole batch."""
    divisor = payload["gradient_accumulation"]["total_active_tokens"] or 1
    outputs, total, count, seen = [], 0.0, 0, 0
    for sample in payload["data"]:
        tokens = _tokens(sample["model_input"])
        targets = sample["target_ids"]
        where = [at for at, target in enumerate(targets) if target != _IGNORED]
        new, grads = _score(state, policy, tokens, targets, where)
        losses, slopes = _losses(payload["loss"], sample, new, where)
        total += float(losses.sum())
        count += len(where)
        seen += len(tokens)
        if backward:
            policy.grads = policy.grads + slopes @ grads / divisor
        values = np.zeros(len(tokens), "<f4")
        values[where] = new
        tensor = {"dtype": "<f4", "shape": [len(tokens)], "encoding": "raw_le"}
        outputs.append({"logprobs": {**tensor, "data": values.tobytes()}})
    if backward:
        state.usage["trained"] += seen
    metrics = {"loss_sum": total, "loss_mean": total / (count or 1), "token_count": count}
    usage = {"input_tokens": seen, "output_tokens": 0, "train_tokens": seen * backward}
    return {"loss_fn_outputs": outputs, "metrics": metrics}, usage


def _losses(
    loss: dict[str, Any], sample: dict[str, Any], new: np.ndarray, where: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    if loss["type"] == "cross_entropy":
        weights = np.array(sample["weights"])[where]
        return -weights * new, -weights
    old, advantages = np.array(sample["logprobs"])[where], np.array(sample["advantages"])[where]
    return token_loss(loss["type"], loss["config"], new, old, advantages)


def _score(
    state: State, policy: Policy, tokens: list[int], targets: list[int], where: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of the targets at `where`, and their gradients, one row each."""
    whole = [*tokens, targets[-1]]
    regions = [(s, e) for s, e in state.reader.regions(whole)]
    known: dict[int, Any] = {}
    values, grads = [], []
    for at in where:
        position = at + 1
        start = next((s for s, e in regions if s <= position < e), None)
        if start is not None and start not in known:
            known[start] = state.reader.replies(whole[:start])
        replies = known[start] if start is not None else None
        prefix = tuple(whole[start:position]) if start is not None else ()
        value, gradient = policy.logprob(replies, prefix, targets[at])
        values.append(value)
        grads.append(gradient)
    return np.array(values), np.array(grads).reshape(len(values), len(policy.grads))


def sample(state: State, run: Run, body: dict[str, Any]) -> dict[str, Any]:
    """The same request is answered once, however often it is sent."""
    if body["request_id"] in state.answers:
        return state.answers[body["request_id"]]
    params, prompt = body["sampling_params"], _tokens(body["prompt"])
    longest = state.limits["max_seq_len"]
    if longest is not None and len(prompt) + 1 > longest:
        raise ServiceError(400, "validation_failed", "the prompt is longer than max_seq_len")
    replies = state.reader.replies(prompt)
    seed = params.get("seed") or 0
    sequences = [
        _draw(state, run.policy, replies, params, np.random.default_rng([seed, k]))
        for k in range(body["num_samples"])
    ]
    drawn = sum(len(sequence["tokens"]) for sequence in sequences)
    answer: dict[str, Any] = {
        "request_id": body["request_id"],
        "sampling_run": run.cuid,
        "sequences": sequences,
        "usage": {"input_tokens": len(prompt), "output_tokens": drawn},
    }
    if body["return_prompt_logprobs"]:
        where = list(range(len(prompt) - 1))
        values, _ = _score(state, run.policy, prompt[:-1], prompt[1:], where)
        answer["prompt_logprobs"] = [None, *values.tolist()]
    with state.lock:
        state.usage["prefill"] += len(prompt)
        state.usage["sampled"] += drawn
        state.answers[body["request_id"]] = answer
    return answer


def _draw(
    state: State, policy: Policy, replies: Any, params: dict[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    tokens: list[int] = []
    logprobs: list[float] = []
    reason = "length"
    while len(tokens) < params["max_tokens"]:
        chances = policy.distribution(replies, tuple(tokens))
        token = _pick(chances, float(params.get("temperature", 1.0)), rng)
        tokens.append(token)
        logprobs.append(float(np.log(chances[token])))
        if token == state.reader.end:
            reason = "stop"
            break
    return {"tokens": tokens, "text": None, "logprobs": logprobs, "stop_reason": reason}


def _pick(chances: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    if temperature < 1e-3:
        return int(chances.argmax())
    scaled = np.log(chances) / temperature
    raised = np.exp(scaled - scaled.max())
    return int(rng.choice(len(raised), p=raised / raised.sum()))


def _tokens(prompt: dict[str, Any]) -> list[int]:
    return [token for chunk in prompt["chunks"] for token in chunk["tokens"]]
