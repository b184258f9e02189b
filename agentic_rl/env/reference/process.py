"""The parent's side of a worker process."""

import asyncio
import json
import os
import selectors
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from agentic_rl.cache import cache_folder
from agentic_rl.errors import EnvError

_MODULE = "agentic_rl.env.reference.worker"


class Worker:
    """One process and the thread that talks to it.

    `owner` is whose episode it plays, `used` when it last answered. `plain` leaves TextWorld as it
    is but for its `eval`: slow, to check the rest of the patches against.
    """

    def __init__(self, timeout: float, *, plain: bool = False) -> None:
        self._timeout = timeout
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="textworld")
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(os.getpid()), *(["plain"] if plain else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
        self._rest = b""
        self.owner: object = None
        self.busy = False
        self.used = 0.0
        # The games it has translated last; it remembers as many (see `patches`).
        self.translated: deque[str] = deque(maxlen=8)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Raises EnvError where the game, or the process, fails or takes too long."""
        loop = asyncio.get_running_loop()
        reply = await loop.run_in_executor(self._thread, self._ask, request)
        if "error" in reply:
            raise EnvError(f"TextWorld: {reply['error']}")
        return reply

    def close(self) -> None:
        """Ends the process, at once if it does not end by itself; a request under way fails."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):  # the process is gone, and what was not yet written with it
            self._process.stdin.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.shutdown()
        self._process.stdout.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            reply: dict[str, Any] = json.loads(self._line())
        except (OSError, ValueError) as error:
            self._process.kill()
            self._process.wait()
            raise EnvError(f"a TextWorld worker failed: {error}") from error
        return reply

    def _line(self) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(self._timeout):
                    raise OSError(f"no answer within {self._timeout:g} seconds")
                chunk = os.read(stdout.fileno(), 1 << 20)
                if not chunk:
                    raise OSError("it ended")
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def _environment() -> dict[str, str]:
    """What alfworld writes on import, and the planner for a moment, goes into our cache folder."""
    data = cache_folder() / "textworld"
    data.mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        "ALFWORLD_DATA": str(data),
        "TMPDIR": str(data),
        "PYTHONHASHSEED": "0",
    }
