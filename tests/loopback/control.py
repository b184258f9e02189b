"""The control plane: keys, sessions, runs; JSON below /api."""

import threading
from collections.abc import Mapping
from typing import Any

from tests.loopback import actor
from tests.loopback.model import Policy
from tests.loopback.state import KEY, MODEL, Run, ServiceError, State, now

_SPEC = ("lora_rank", "train_mlp", "train_attn", "train_unembed", "seed")
_V1 = "/openapi/v1"


def answer(
    state: State, line: str, query: dict[str, list[str]], body: dict[str, Any], key: str
) -> dict[str, Any]:
    """`line` is "METHOD /path", without /api."""
    if key != KEY:
        raise ServiceError(401, "unauthorized", "the API key is not known")
    method, path = line.split(" ")
    parts = path.removeprefix(_V1).strip("/").split("/")
    if line == f"GET {_V1}/api-key/verify":
        return dict(_IDENTITY)
    if line == "GET /sdk/bootstrap":
        version = query["sdk_version"][0]
        return {"compatibility": {"status": "compatible", "sdk_version": version}, "notices": []}
    if line == f"POST {_V1}/service-sessions":
        return _open(state)
    if line == f"GET {_V1}/training-runs/by-checkpoint-uri":
        spec = state.checkpoint(query["checkpoint_uri"][0])["spec"]
        return {name: spec.get(name) for name in ("base_model", *_SPEC)}
    if method == "POST" and parts[0] == "service-sessions" and parts[-1] == "close":
        state.sessions[parts[1]] = body["status"]
        return {}
    if method == "POST" and parts[0] == "service-sessions" and parts[-1] == "training-runs":
        return _training(state, parts[1], body)
    if method == "POST" and parts[0] == "service-sessions" and parts[-1] == "sampling-runs":
        return _sampling(state, parts[1], body)
    if method == "POST" and parts[-1] == "renew":
        return _renewed(state, state.run(parts[1], parts[0].removesuffix("-runs")))
    raise ServiceError(404, "not_found", f"no route {line}")


_IDENTITY: Mapping[str, Any] = {
    "api_key_tid": "tid_1",
    "api_key_name": "loopback",
    "user_cuid": "usr_1",
    "username": "loopback",
    "display_name": None,
    "workspace_cuid": "wsp_1",
    "workspace_name": "loopback",
    "workspace_type": "PERSONAL",
    "expires_at": None,
}


def _open(state: State) -> dict[str, Any]:
    session = state.cuid("ses")
    state.sessions[session] = "ACTIVE"
    return {
        "service_session_cuid": session,
        "workspace_cuid": "wsp_1",
        "status": "ACTIVE",
        "created_at": now(),
    }


def _training(state: State, session: str, body: dict[str, Any]) -> dict[str, Any]:
    _check_session(state, session)
    uri = body.get("source_checkpoint_uri", "")
    if uri:
        spec = dict(state.checkpoint(uri, training=True)["spec"])
    else:
        _check_model(body["base_model"])
        spec = {name: body.get(name) for name in _SPEC}
        spec["base_model"] = state.tokenizer_folder
    run = Run(state.cuid("trn"), "training", session, spec, Policy(state.reader.vocabulary))
    state.runs[run.cuid] = run
    threading.Thread(target=actor.work, args=(state, run), daemon=True).start()
    return _created(state, run, "trainer")


def _sampling(state: State, session: str, body: dict[str, Any]) -> dict[str, Any]:
    _check_session(state, session)
    _check_model(body["base_model"])
    policy = Policy(state.reader.vocabulary)
    uri = body.get("source_checkpoint_uri", "")
    if uri and not state.stale:
        policy.load(state.checkpoint(uri)["kept"], optimizer=False)
    run = Run(state.cuid("smp"), "sampling", session, {"source": uri}, policy)
    state.runs[run.cuid] = run
    return _created(state, run, "sampler")


def _created(state: State, run: Run, limits: str) -> dict[str, Any]:
    return {
        f"{run.kind}_run_cuid": run.cuid,
        "service_session_cuid": run.session,
        "workspace_cuid": "wsp_1",
        "status": "PENDING",
        "run_index": 1,
        "model_spec_cuid": "spec_1",
        "model_alias": MODEL,
        "model_id": state.tokenizer_folder,
        "actor": state.actor,
        "actor_jwt": state.issue(run),
        "created_at": now(),
        limits: state.limits,
    }


def _renewed(state: State, run: Run) -> dict[str, Any]:
    return {
        f"{run.kind}_run_cuid": run.cuid,
        "service_session_cuid": run.session,
        "workspace_cuid": "wsp_1",
        "actor": state.actor,
        "actor_jwt": state.issue(run),
    }


def _check_session(state: State, session: str) -> None:
    if state.sessions.get(session) != "ACTIVE":
        raise ServiceError(404, "service_session_not_found", session)


def _check_model(name: str) -> None:
    if name != MODEL:
        raise ServiceError(404, "model_not_found", f"model '{name}' is not published; {MODEL} is")
