"""No mirror: the run folder holds everything."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rl.tracker import trackers


@trackers.register("none")
@dataclass(frozen=True)
class NoTracker:
    """Mirrors nothing."""

    def start(self, run_id: str, folder: Path, config: Mapping[str, Any]) -> None:
        """Nothing to open."""

    def log(self, metrics: Mapping[str, float], update: int) -> None:
        """Nothing to mirror."""

    def finish(self, status: str) -> None:
        """Nothing to close."""
