"""`run.json`: one record that says what a run is, who writes it and how it ended."""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import agentic_rl
from agentic_rl.errors import RunFolderError
from agentic_rl.results.schemas import VERSION

FILE = "run.json"

Status = Literal["running", "finished", "failed", "stopped", "interrupted"]

_PACKAGES = ("numpy", "polars", "hydra-core", "alfworld", "textworld", "pytrio", "swanlab")
_SECRET = re.compile(r"(^|[_.])(api_?key|(access_?)?token|secret|password)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. `panels` names each split's games; `process` tells a pid from its later namesake."""

    run_id: str
    command: str
    recipe: str | None = None
    overrides: tuple[str, ...] = ()
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    git_commit: str | None = None
    panels: Mapping[str, str] = field(default_factory=dict)
    schema: int = VERSION
    host: str = ""
    pid: int = 0
    process: str | None = None
    started: str = ""
    ended: str | None = None
    resumed: int = 0
    status: Status = "running"
    error: str | None = None

    @property
    def alive(self) -> bool:
        """Whether its writer is at work on this host."""
        return self.status == "running" and self._here and _runs(self.pid, self.process)

    @property
    def _here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def state(self) -> Status:
        """The status, where a writer of this host that died without a word reads as interrupted."""
        dead = self.status == "running" and self._here and not self.alive
        return "interrupted" if dead else self.status


def new_record(
    command: str, *, recipe: str | None = None, overrides: Sequence[str] = (), seed: int = 0
) -> RunRecord:
    """A running record of this process, with an id of its own."""
    record = RunRecord(
        run_id=new_run_id(),
        command=command,
        recipe=recipe,
        overrides=tuple(_without_secret(override) for override in overrides),
        seed=seed,
        versions=dict(_versions()),
        git_commit=_git_commit(),
        started=now(),
    )
    return owned(record)


def new_run_id() -> str:
    """The UTC second and 48 random bits: unique however many start at once."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(6)}"


def owned(record: RunRecord) -> RunRecord:
    """The record with this process as its writer."""
    pid = os.getpid()
    return replace(record, host=socket.gethostname(), pid=pid, process=_process(pid))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_record(folder: Path) -> RunRecord:
    """The run's record; RunFolderError where there is none or it is not ours."""
    path = folder / FILE
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RunFolderError(f"{folder} holds no run: it has no {FILE}") from None
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict) or not _looks_ours(content):
        raise RunFolderError(f"{path} is not the record of an agentic-rl run")
    known = {entry.name for entry in fields(RunRecord)}
    content = {key: value for key, value in content.items() if key in known}
    return RunRecord(**content | {"overrides": tuple(content.get("overrides") or ())})


def write_record(folder: Path, record: RunRecord) -> None:
    """Replaces `run.json` as a whole."""
    os.replace(_written(folder, record), folder / FILE)


def claim(folder: Path, record: RunRecord) -> bool:
    """Writes `run.json` unless another process was first."""
    temporary = _written(folder, record)
    try:
        os.link(temporary, folder / FILE)
    except FileExistsError:
        return False
    except OSError:
        # A file system without hard links: the next best is not to write over a record seen.
        if (folder / FILE).exists():
            return False
        os.replace(temporary, folder / FILE)
    finally:
        temporary.unlink(missing_ok=True)
    return True


def is_secret(key: str) -> bool:
    """Whether a key's value must never be written, such as `backend.api_key`."""
    return bool(_SECRET.search(key))


def _written(folder: Path, record: RunRecord) -> Path:
    path = folder / f".{FILE}.{record.run_id}.{os.getpid()}.tmp"
    text = json.dumps(asdict(record), indent=2, ensure_ascii=False, allow_nan=False)
    with path.open("wb") as file:
        file.write(text.encode("utf-8", "replace") + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return path


def _looks_ours(content: Mapping[str, Any]) -> bool:
    kinds = {"run_id": str, "command": str, "seed": int, "status": str, "pid": int, "host": str}
    return all(isinstance(content.get(key), kind) for key, kind in kinds.items())


def _without_secret(override: str) -> str:
    key, equals, _ = override.partition("=")
    return f"{key}=***" if equals and is_secret(key) else override


@cache
def _versions() -> dict[str, str]:
    found = {
        "python": ".".join(map(str, sys.version_info[:3])),
        "agentic_rl": agentic_rl.__version__,
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def _git_commit() -> str | None:
    """Of the checkout that this package runs from, else of the working folder."""
    source = Path(__file__).resolve().parents[2]
    where = source if (source / "pyproject.toml").is_file() else Path.cwd()
    try:
        done = subprocess.run(
            ["git", "-C", str(where), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _process(pid: int) -> str | None:
    """When the process began, in the kernel's ticks; None where the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def _runs(pid: int, process: str | None) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return process is None or _process(pid) == process
