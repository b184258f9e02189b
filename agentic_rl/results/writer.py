"""The one writer of a run folder: rows as they happen, Parquet at the end."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentic_rl.errors import RunFolderError
from agentic_rl.results import checkpoints, frames, trajectories
from agentic_rl.results.lines import LineFile, keep_lines, read_lines, replace_file, to_line
from agentic_rl.results.record import (
    FILE,
    RunRecord,
    Status,
    claim,
    is_secret,
    now,
    owned,
    read_record,
    write_record,
)
from agentic_rl.results.rows import complete_row, finite
from agentic_rl.results.schemas import TABLES
from agentic_rl.training import Checkpoint

CONFIG = "resolved.yaml"
CHECKPOINTS = "checkpoints"

_DEFAULTS = ["experiment_schema", "run_folder", "_self_"]
_WRITTEN = frozenset(
    {CONFIG, CHECKPOINTS, checkpoints.FILE, trajectories.FILE}
    | {f"{name}{ending}" for name in TABLES for ending in (".ndjson", ".parquet")}
)


class RunFolder:
    """An open run folder. `create` begins a run, `reopen` goes on with one that ended early."""

    def __init__(self, path: Path, record: RunRecord) -> None:
        self.path = path
        self.record = record
        self._open: dict[str, LineFile] = {}

    @classmethod
    def create(cls, path: Path, record: RunRecord, *, overwrite: bool = False) -> "RunFolder":
        """Claims an empty or new folder, hidden files aside.

        `overwrite` removes what an earlier run wrote there, and nothing else.
        """
        path.mkdir(parents=True, exist_ok=True)
        with _alone(path):
            if (path / FILE).exists():
                _remove_run(path, overwrite)
            elif foreign := _foreign(path, overwrite):
                raise RunFolderError(
                    f"{path} is not empty and holds no run: it has '{foreign}'."
                    " Choose another folder with hydra.run.dir=..."
                )
            if not claim(path, record):
                raise RunFolderError(f"{path}: another process has just begun a run there")
        return cls(path, record)

    @classmethod
    def reopen(cls, path: Path, seen: RunRecord | None = None) -> "RunFolder":
        """The same run under this process; refused while its writer is at work.

        So it is where the record is no longer the one `seen`: another process has gone on with it.
        """
        with _alone(path):
            record = read_record(path)
            if record.alive:
                raise RunFolderError(
                    f"{path} is being written by process {record.pid}: stop it first"
                )
            if seen not in (None, record):
                raise RunFolderError(f"{path}: another process has just gone on with the run")
            record = replace(
                owned(record), status="running", ended=None, error=None, resumed=record.resumed + 1
            )
            _remove_parts(path)
            write_record(path, record)
        return cls(path, record)

    @property
    def run_id(self) -> str:
        return self.record.run_id

    def describe(self, *, panels: Mapping[str, str]) -> None:
        """Adds the panel hash of each split to the record."""
        self.record = replace(self.record, panels={**self.record.panels, **panels})
        write_record(self.path, self.record)

    def write_config(self, container: Mapping[str, Any]) -> None:
        """`resolved.yaml`: fit to run again, without any secret."""
        import yaml  # type: ignore[import-untyped]

        content = {"defaults": _DEFAULTS, **_without_secrets(container)}
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        replace_file(self.path / CONFIG, lambda path: _write_text(path, text))

    def append(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows of one table; `run_id` is filled in. ValueError for an unknown column."""
        schema = TABLES[table]
        if f"{table}.ndjson" not in self._open:
            frames.to_ndjson(self.path, table)
        full = [complete_row(schema, {"run_id": self.run_id, **row}) for row in rows]
        self._lines(f"{table}.ndjson").append(to_line(row) for row in full)

    def append_trajectories(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows made by `trajectory_row`; `run_id` is filled in."""
        full = [{"run_id": self.run_id, **row} for row in rows]
        self._lines(trajectories.FILE).append(to_line(row) for row in full)

    def checkpoint_folder(self, name: str) -> Path:
        """An empty folder for a backend to save into; what an unfinished save left goes."""
        folder = self.path / CHECKPOINTS / name
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        return folder

    def add_checkpoint(
        self, checkpoint: Checkpoint, update: int, metrics: Mapping[str, Any] | None = None
    ) -> None:
        """Registers a checkpoint that is complete, with the rows of its update before it."""
        row = checkpoints.checkpoint_row(self.path, checkpoint, update)
        row["metrics"] = finite(dict(metrics or {}))
        self._lines(checkpoints.FILE).append([to_line({"run_id": self.run_id, **row})])

    def cut_after(self, update: int) -> None:
        """Drops every row of a later update, and makes finished tables ready for more rows."""
        self._close()
        for name in TABLES:
            frames.to_ndjson(self.path, name)
        names = [f"{name}.ndjson" for name in TABLES]
        for name in (*names, trajectories.FILE, checkpoints.FILE):
            if (self.path / name).exists():
                keep_lines(self.path / name, lambda row: row["update"] <= update)

    def keep_finished_episodes(self, update: int) -> list[dict[str, Any]]:
        """Of an evaluation cut short: the rows of its episodes that ended without an error.

        All rows of its other episodes go, and so do its rows of `evaluations`, which are made anew
        when the rest has been played.
        """
        self._close()
        for name in TABLES:
            frames.to_ndjson(self.path, name)
        episodes = self.path / "episodes.ndjson"
        if not episodes.exists():
            return []
        kept = [
            row
            for row in read_lines(episodes)
            if _of_evaluation(row, update) and row["error"] is None
        ]
        names = {_episode(row) for row in kept}
        for file in ("episodes.ndjson", "steps.ndjson", trajectories.FILE):
            if (self.path / file).exists():
                keep_lines(
                    self.path / file,
                    lambda row: not _of_evaluation(row, update) or _episode(row) in names,
                )
        if (self.path / "evaluations.ndjson").exists():
            keep_lines(self.path / "evaluations.ndjson", lambda row: row["update"] != update)
        return kept

    def finish(self, status: Status, error: str | None = None) -> None:
        """Turns each table into Parquet and says in `run.json` how the run ended."""
        self._close()
        for name in TABLES:
            frames.to_parquet(self.path, name)
        self.record = replace(self.record, status=status, error=error, ended=now())
        write_record(self.path, self.record)

    def _lines(self, name: str) -> LineFile:
        if name not in self._open:
            self._open[name] = LineFile(self.path / name)
        return self._open[name]

    def _close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time decides whose a folder is; a lock ends with its process."""
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _remove_run(path: Path, overwrite: bool) -> None:
    record = read_record(path) if overwrite else None
    if record is None:
        raise RunFolderError(
            f"{path} already holds a run. Replace it with overwrite=true, go on with it by"
            f" `agentic-rl resume {path}`, or choose another folder with hydra.run.dir=..."
        )
    if record.alive:
        raise RunFolderError(f"{path} is being written by process {record.pid}: stop it first")
    _remove_parts(path)
    for name in sorted(_WRITTEN):
        entry = path / name
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    # Last, so that a folder only half emptied still reads as a run's.
    (path / FILE).unlink()


def _remove_parts(path: Path) -> None:
    """Files that a writer, killed, had only half written."""
    for name in (*_WRITTEN, FILE):
        for part in path.glob(f".{name}.*.tmp"):
            part.unlink(missing_ok=True)


def _foreign(path: Path, overwrite: bool) -> str | None:
    """A file that stands in the way. `overwrite` bears with any that the run will not write."""
    names = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
    in_the_way = [name for name in names if not overwrite or name in _WRITTEN]
    return in_the_way[0] if in_the_way else None


def _without_secrets(content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_secrets(value)
        if isinstance(value, Mapping)
        else None
        if is_secret(str(key)) and isinstance(value, str)
        else value
        for key, value in content.items()
    }


def _of_evaluation(row: Mapping[str, Any], update: int) -> bool:
    return bool(row["phase"] == "evaluation" and row["update"] == update)


def _episode(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in TABLES["episodes"].keys if key != "run_id")


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
