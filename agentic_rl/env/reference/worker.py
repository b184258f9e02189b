"""A worker process: plays TextWorld games that it is sent, one JSON line a request.

Run as `python -m agentic_rl.env.reference.worker PARENT_PID [plain]`. It ends when its
input ends or its parent changes, whatever it is doing.
"""

import json
import os
import queue
import signal
import sys
import threading
from typing import Any, TextIO

_WATCH_SECONDS = 2.0


class Player:
    """TextWorld's environment, under ALFWorld's wrappers, one game after the other."""

    def __init__(self) -> None:
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos
        from textworld import EnvInfos
        from textworld.envs import PddlEnv

        infos = EnvInfos(won=True, admissible_commands=True)
        self._env = AlfredInfos(AlfredDemangler(PddlEnv(infos), shuffle=False))

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "open":
            self._env.load(request["game"])
            return _reply(self._env.reset())
        state, _, _ = self._env.step(request["action"])
        return _reply(state)


def _reply(state: Any) -> dict[str, Any]:
    return {
        "observation": state.feedback,
        "actions": state["admissible_commands"],
        "won": bool(state["won"]),
        "score": float(state.get("score") or 0),
    }


def _claim_output() -> TextIO:
    """The pipe to the parent; whatever TextWorld prints goes to the error stream instead."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def _end_with_parent(parent: int) -> None:
    def watch() -> None:
        while os.getppid() == parent:
            threading.Event().wait(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _requests() -> "queue.SimpleQueue[str]":
    """Lines as they come; a thread of its own sees the end of the input at once."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return lines


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    output = _claim_output()
    _end_with_parent(int(sys.argv[1]))
    lines = _requests()
    from agentic_rl.env.reference.patches import install

    install(plain="plain" in sys.argv)
    player = Player()
    while True:
        try:
            reply = player.answer(json.loads(lines.get()))
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(reply), file=output, flush=True)


if __name__ == "__main__":
    main()
