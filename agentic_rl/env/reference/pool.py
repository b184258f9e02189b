"""TextWorld episodes over a bounded number of worker processes.

A worker plays one episode at a time, since TextWorld's planner library keeps one state a process.
An episode keeps its worker while it goes on; one that has been idle for a moment may lose it to
another, and is played again, and compared, when it goes on.
"""

import asyncio
import json
import time
from hashlib import sha256
from typing import Any

from agentic_rl.env.engine import GameFile
from agentic_rl.env.engine.safety import refuse_unsafe
from agentic_rl.env.reference.process import Worker
from agentic_rl.errors import EnvError
from agentic_rl.types import EnvStep

PATIENCE = 0.3
"""Seconds of idleness after which an episode's worker may be given to another episode."""

_POLL = 0.02


class ReferencePool:
    """Starts workers as they are needed, at most `workers`, and lends them to episodes."""

    def __init__(self, workers: int, timeout: float, *, plain: bool = False) -> None:
        self._most, self._timeout, self._plain = workers, timeout, plain
        self._workers: list[Worker] = []

    async def open(self, file: GameFile) -> "ReferenceEnv":
        """A fresh episode. Raises UnsafeGame before any worker sees such a file."""
        refuse_unsafe(file)
        env = ReferenceEnv(self, file)
        await env.reset()
        return env

    async def close(self) -> None:
        workers, self._workers = self._workers, []
        await asyncio.gather(*(asyncio.to_thread(worker.close) for worker in workers))

    async def ask(self, owner: "ReferenceEnv", request: dict[str, Any]) -> dict[str, Any]:
        """By the worker that the episode holds; one whose answer is lost plays no more."""
        worker = self.worker_of(owner)
        if worker is None:
            raise EnvError("the episode's TextWorld worker is gone")
        worker.busy = True
        try:
            return await worker.ask(request)
        except BaseException:
            worker.owner = None
            raise
        finally:
            worker.busy = False
            worker.used = time.monotonic()

    def worker_of(self, owner: "ReferenceEnv") -> Worker | None:
        return next((w for w in self._workers if w.owner is owner and w.alive), None)

    async def lend(self, owner: "ReferenceEnv") -> None:
        """Waits for a worker and gives it to the episode."""
        while True:
            for worker in [worker for worker in self._workers if not worker.alive]:
                self._workers.remove(worker)
                worker.close()
            free = self._free(owner.digest)
            if free is not None:
                free.owner = owner
                free.used = time.monotonic()
                free.translated.append(owner.digest)
                return
            await asyncio.sleep(_POLL)

    def release(self, owner: "ReferenceEnv") -> None:
        worker = self.worker_of(owner)
        if worker is not None:
            worker.owner = None

    def _free(self, digest: str) -> Worker | None:
        """Nobody's worker, rather one that knows the game; a new one; or one long idle."""
        nobodys = [worker for worker in self._workers if worker.owner is None and not worker.busy]
        if nobodys:
            return min(nobodys, key=lambda worker: digest not in worker.translated)
        if len(self._workers) < self._most:
            self._workers.append(Worker(self._timeout, plain=self._plain))
            return self._workers[-1]
        since = time.monotonic() - PATIENCE
        idle = [worker for worker in self._workers if not worker.busy and worker.used < since]
        return min(idle, key=lambda worker: worker.used, default=None)


class ReferenceEnv:
    """One episode; its commands are kept, so that it can be played again on any worker."""

    def __init__(self, pool: ReferencePool, file: GameFile) -> None:
        self._pool = pool
        self._file = file
        self._played: list[tuple[str, str]] = []  # (command, fingerprint of what it answered)
        self._opening = ""
        self._last: EnvStep | None = None

    @property
    def digest(self) -> str:
        return self._file.digest

    @property
    def last(self) -> EnvStep:
        assert self._last is not None, "reset() comes first"
        return self._last

    async def reset(self) -> EnvStep:
        self._played = []
        reply = await self._start()
        self._opening = _fingerprint(reply)
        self._last = _result(reply, admissible=True, start=True)
        return self._last

    async def step(self, action: str) -> EnvStep:
        if self.last.done:
            return self.last
        if self._pool.worker_of(self) is None:
            await self._replay()
        admissible = action.strip() in self.last.admissible_actions
        reply = await self._pool.ask(self, {"do": "step", "action": action})
        self._played.append((action, _fingerprint(reply)))
        self._last = _result(reply, admissible=admissible)
        if self._last.done:
            self._pool.release(self)
        return self._last

    async def branch(self) -> "ReferenceEnv":
        """Another episode in this state. It is played up to here when it takes its first step."""
        other = ReferenceEnv(self._pool, self._file)
        other._played, other._opening = list(self._played), self._opening
        other._last = self.last
        return other

    async def close(self) -> None:
        self._pool.release(self)

    async def _start(self) -> dict[str, Any]:
        if self._pool.worker_of(self) is None:
            await self._pool.lend(self)
        game = {
            "pddl_domain": self._file.domain,
            "grammar": self._file.grammar,
            "pddl_problem": self._file.problem,
        }
        return await self._pool.ask(self, {"do": "open", "game": game})

    async def _replay(self) -> None:
        """EnvError where TextWorld answers otherwise than it did."""
        answers = [_fingerprint(await self._start())]
        for action, _ in self._played:
            reply = await self._pool.ask(self, {"do": "step", "action": action})
            answers.append(_fingerprint(reply))
        if answers != [self._opening, *(answer for _, answer in self._played)]:
            raise EnvError("TextWorld answered otherwise when the episode was played again")


def _fingerprint(reply: dict[str, Any]) -> str:
    return sha256(json.dumps(reply, sort_keys=True).encode()).hexdigest()


def _result(reply: dict[str, Any], *, admissible: bool, start: bool = False) -> EnvStep:
    won = reply["won"]
    return EnvStep(
        observation=reply["observation"],
        admissible_actions=tuple(reply["actions"]),
        admissible=admissible,
        score=reply["score"],
        done=won and not start,
        won=won,
    )
