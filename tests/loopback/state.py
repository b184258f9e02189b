"""What the service remembers, and the faults it is told to make."""

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.loopback.model import Policy, Reader

MODEL = "Qwen/Qwen3.5-4B"
KEY = "sk-loopback-0123456789abcdef"


class ServiceError(Exception):
    """An answer other than success; `body` replaces the usual envelope."""

    def __init__(
        self, status: int, code: str, message: str, body: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.body = status, code, message, body


@dataclass
class Fault:
    """Strikes requests whose "METHOD /path" begins with `match`, `times` times after `skip`.

    Kinds: http (a status), drop (before acting), drop_after (after acting), truncate (half a body),
    expire (the token), delay, event_fail (an event ends failed), empty (no sequences).
    """

    match: str
    kind: str
    times: int = 1
    skip: int = 0
    status: int = 500
    code: str = "internal_error"
    seconds: float = 0.0
    event: str = ""


@dataclass
class Run:
    """A training or a sampling run."""

    cuid: str
    kind: str
    session: str
    spec: dict[str, Any]
    policy: Policy
    token: str = ""
    index: int = 1
    initialized: bool = False
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    queue: deque[dict[str, Any]] = field(default_factory=deque)
    changed: threading.Condition = field(default_factory=threading.Condition)


@dataclass
class State:
    """One service. `stale` samplers serve the base weights; a `frozen` trainer never moves."""

    tokenizer_folder: str
    reader: Reader
    limits: dict[str, int | None]
    token_seconds: float = 3600.0
    event_seconds: float = 0.0
    stale: bool = False
    frozen: bool = False
    url: str = ""
    stopping: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)
    sessions: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    checkpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(
        default_factory=lambda: {"prefill": 0, "sampled": 0, "trained": 0}
    )
    _count: int = 0

    def cuid(self, prefix: str) -> str:
        with self.lock:
            self._count += 1
            return f"{prefix}_{self._count:06d}"

    def fault(self, line: str, event: str = "") -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times <= 0 or not line.startswith(fault.match):
                    continue
                if fault.event and fault.event != event:
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def forget(self) -> None:
        """Loses every run and event, as after a crash; checkpoints and sessions stay."""
        with self.lock:
            self.runs.clear()
            self.tokens.clear()

    def run(self, cuid: str, kind: str) -> Run:
        run = self.runs.get(cuid)
        if run is None or run.kind != kind:
            raise ServiceError(404, "run_not_found", cuid)
        return run

    def checkpoint(self, uri: str, *, training: bool = False) -> dict[str, Any]:
        found = self.checkpoints.get(uri)
        if found is None:
            raise ServiceError(404, "checkpoint_not_found", uri)
        if training and not found["training"]:
            raise ServiceError(400, "checkpoint_invalid_type", "sampler weights cannot be trained")
        return found

    def issue(self, run: Run) -> dict[str, str]:
        """A new token for a run; the one before no longer works."""
        with self.lock:
            self.tokens.pop(run.token, None)
            run.token = "jwt." + self.cuid("token")
            self.tokens[run.token] = run.cuid
        return {"token": run.token, "expires_at": now(self.token_seconds)}

    def authorize(self, header: str) -> Run:
        run = self.runs.get(self.tokens.get(header.removeprefix("Bearer "), ""))
        if run is None:
            raise ServiceError(401, "unauthorized", "the actor token is unknown or expired")
        return run

    @property
    def actor(self) -> dict[str, Any]:
        return {
            "actor_cuid": "act_loopback",
            "endpoint": f"{self.url}/actor",
            "connect_mode": "direct",
            "tls_enabled": False,
        }


def now(seconds: float = 0.0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
