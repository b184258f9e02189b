"""The service over HTTP, and a context manager that runs it in this process."""

import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgpack
from transformers import AutoTokenizer

from tests.loopback import actor, control, tokenizer
from tests.loopback.model import Reader
from tests.loopback.state import Fault, ServiceError, State

LIMITS = {"max_batch_size": 128, "max_tokens_per_request": 60000, "max_seq_len": 16384}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    state: State

    def log_message(self, *args: object) -> None:
        """Silent: tests read `state.requests`."""

    def respond(self) -> None:
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        line = f"{self.command} {url.path}"
        event: dict[str, Any] | None = None
        if line == "POST /actor/v1/events":
            event = msgpack.unpackb(raw, raw=False)
        kind = event["type"] if event else ""
        record: dict[str, Any] = {"line": line, "event": kind, "status": 0, "body": raw}
        record["headers"] = dict(self.headers)
        self.state.requests.append(record)
        fault = self.state.fault(line, kind)
        try:
            if fault is not None and self._before(fault, record):
                return
            status, data = self._route(line, url, raw, event)
        except ServiceError as error:
            record["status"] = error.status
            flat = {"code": error.code, "message": error.message}
            self._reply(error.status, flat if "/api/" in line else {"error": flat})
            return
        record["status"] = status
        if fault is not None and fault.kind == "drop_after":
            record["status"] = "dropped after"
            self.close_connection = True
            return
        if fault is not None and fault.kind == "empty":
            data = {"request_id": "x"}
        self._reply(status, data, cut=fault is not None and fault.kind == "truncate")

    def _before(self, fault: Fault, record: dict[str, Any]) -> bool:
        """True where the request gets no answer at all."""
        if fault.kind == "drop":
            record["status"] = "dropped"
            self.close_connection = True
            return True
        if fault.kind == "delay":
            time.sleep(fault.seconds)
        if fault.kind == "http":
            raise ServiceError(fault.status, fault.code, "an injected failure")
        if fault.kind == "expire":
            self.state.tokens.pop(
                self.headers.get("Authorization", "").removeprefix("Bearer "), None
            )
        return False

    def _route(
        self, line: str, url: SplitResult, raw: bytes, event: dict[str, Any] | None
    ) -> tuple[int, Any]:
        state = self.state
        if url.path == "/":
            return 200, {"service": "loopback"}
        if url.path == "/__fault__":
            state.faults.append(Fault(**json.loads(raw)))
            return 200, {}
        if url.path.startswith("/api/"):
            body = json.loads(raw) if raw else {}
            short = f"{self.command} {url.path.removeprefix('/api')}"
            key = self.headers.get("X-API-Key", "")
            return 200, control.answer(state, short, parse_qs(url.query), body, key)
        run = state.authorize(self.headers.get("Authorization", ""))
        if line == "POST /actor/v1/client/heartbeat":
            return 200, {"heartbeat_ms": 60000}
        if event is not None:
            return 202, actor.submit(run, event)
        if line.startswith("GET /actor/v1/events/"):
            wait = self.headers.get("Prefer", "wait=0").partition("wait=")[2]
            return 200, actor.poll(run, url.path.rpartition("/")[2], float(wait or 0))
        if line == f"POST /actor/v1/sampling-runs/{run.cuid}/sample":
            return 200, actor.sample(state, run, json.loads(raw))
        raise ServiceError(404, "not_found", f"no route {line}")

    def _reply(self, status: int, data: Any, *, cut: bool = False) -> None:
        packed = "application/msgpack" in self.headers.get("Accept", "")
        raw = msgpack.packb(data, use_bin_type=True) if packed else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", f"application/{'msgpack' if packed else 'json'}")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw[: len(raw) // 2] if cut else raw)
        self.wfile.flush()
        self.close_connection = self.close_connection or cut

    do_GET = do_POST = do_PATCH = do_HEAD = respond


class Server(ThreadingHTTPServer):
    """Remembers its connections, to cut them all at once."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut is no news."""

    def cut(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Loopback:
    """`with Loopback(folder) as service:` answers at `service.url`."""

    def __init__(self, folder: Path, port: int = 0, **options: Any) -> None:
        if not (folder / "tokenizer.json").is_file():
            tokenizer.build(folder)
        reader = Reader(AutoTokenizer.from_pretrained(str(folder), local_files_only=True))
        limits = options.pop("limits", LIMITS)
        self.state = State(str(folder), reader, limits, **options)
        handler = type("BoundHandler", (Handler,), {"state": self.state})
        self._server = Server(("127.0.0.1", port), handler)
        self.url = self.state.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.vanish()

    def vanish(self) -> None:
        """From now on nobody listens at the address."""
        self.state.stopping = True
        self._server.cut()

    def asked(self, prefix: str) -> list[Any]:
        """The statuses given to requests that begin so."""
        return [r["status"] for r in self.state.requests if r["line"].startswith(prefix)]
