"""SwanLab as a mirror: it may lose points, but it never stops, blocks or outlives a run."""

import atexit
import logging
import queue
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rl.errors import ConfigError, did_you_mean
from agentic_rl.tracker import trackers

_MODES = ("online", "local", "offline", "disabled")
_STATES = {"finished": "success", "stopped": "aborted"}

log = logging.getLogger(__name__)

_Message = tuple[str, Any]


@trackers.register("swanlab")
@dataclass
class SwanLab:
    """Mirrors metrics to SwanLab, its files in the run folder.

    All of SwanLab runs in a thread of its own: no prompt, no wait for a login, no patched stdout,
    no handler of signals. Where `mode` cannot start, the run goes on offline and one line says so.
    """

    mode: str = "offline"
    project: str = "agentic-rl"
    workspace: str | None = None
    group: str | None = None
    probe: bool = False
    finish_seconds: float = 20.0

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise ConfigError(
                f"tracker.mode={self.mode} is not one of {', '.join(_MODES)}."
                f"{did_you_mean(self.mode, _MODES)}"
            )
        self._mailbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, run_id: str, folder: Path, config: Mapping[str, Any]) -> None:
        if self.mode == "disabled" or self._thread is not None:
            return
        self._thread = threading.Thread(
            target=self._mirror,
            args=(run_id, folder / "swanlab", dict(config)),
            daemon=True,
            name="agentic-rl-swanlab",
        )
        self._thread.start()

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        if self._thread is not None:
            self._mailbox.put(("log", (dict(metrics), update)))

    def finish(self, status: str) -> None:
        """Waits for what is under way, but not longer than `finish_seconds`."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._mailbox.put(("finish", _STATES.get(status, "crashed")))
        thread.join(self.finish_seconds)
        if thread.is_alive():
            log.warning(
                "SwanLab has not finished within %g s: its copy of the run may lack the end",
                self.finish_seconds,
            )

    def _mirror(self, run_id: str, folder: Path, config: dict[str, Any]) -> None:
        """The thread: opens a run, then takes messages until the last."""
        run = self._open(run_id, folder, config)
        broken = False
        while True:
            kind, content = self._mailbox.get()
            try:
                if run is not None and kind == "log":
                    run.log(content[0], step=content[1])
                elif run is not None and kind == "finish":
                    run.finish(state=content)
            except Exception as error:
                if not broken:
                    log.warning("SwanLab lost a point (%s: %s)", type(error).__name__, _line(error))
                broken = True
            if kind == "finish":
                return

    def _open(self, run_id: str, folder: Path, config: dict[str, Any]) -> Any:
        """A run in the mode asked for, else offline, else none."""
        for mode in dict.fromkeys((self.mode, "offline")):
            try:
                return self._init(mode, run_id, folder, config)
            except Exception as error:
                instead = "mirroring offline" if mode != "offline" else "nothing is mirrored"
                log.warning("SwanLab cannot start %s (%s): %s", mode, _line(error), instead)
        return None

    def _init(self, mode: str, run_id: str, folder: Path, config: dict[str, Any]) -> Any:
        import swanlab

        probed = ("hardware", "runtime", "requirements", "git", "swanlab", "monitor")
        settings = swanlab.Settings(
            interactive=False,
            probe=dict.fromkeys(probed, self.probe),
            terminal={"proxy_type": "none"},
        )
        hook = sys.excepthook
        folder.mkdir(parents=True, exist_ok=True)
        run = swanlab.init(
            mode=mode,
            project=self.project,
            workspace=self.workspace,
            group=self.group,
            name=run_id,
            log_dir=str(folder),
            config=config,
            settings=settings,
            reinit=True,
        )
        # The run's own end is told by `finish`; SwanLab's hooks would wait for the network.
        sys.excepthook = hook
        atexit.unregister(getattr(run, "_handle_atexit", _nothing))
        return run


def _nothing() -> None:
    """What is unregistered where SwanLab registered nothing."""


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
