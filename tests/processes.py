"""Real processes of the command line, and the tables they leave."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agentic_rl.results.reader import table_rows
from agentic_rl.results.schemas import TABLES, TIMES

COMMAND = [sys.executable, "-m", "agentic_rl"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", **more}


def call(*argv: str, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """One command line, to its end."""
    return subprocess.run(
        [*COMMAND, *argv],
        cwd=cwd,
        env=environment(),
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )


def begin(*argv: str, cwd: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, *argv],
        cwd=cwd,
        env=environment(),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table of a run, without the run's id and the columns that hold times."""
    free = TIMES | {"run_id"}
    return {
        name: [
            {key: value for key, value in row.items() if key not in free}
            for row in table_rows(folder, name)
        ]
        for name in TABLES
    }
