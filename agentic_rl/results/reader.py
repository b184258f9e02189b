"""Reads any number of run folders, finished or not: `scan("outputs/", "episodes")`."""

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rl.errors import RunFolderError, did_you_mean
from agentic_rl.results import frames
from agentic_rl.results.lines import DamagedError
from agentic_rl.results.record import FILE, RunRecord, Status, read_record
from agentic_rl.results.schemas import IDENTITY, RUNS, TABLES, Table, Value

if TYPE_CHECKING:
    import polars as pl

Roots = str | Path | Sequence[str | Path]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run where it lies."""

    folder: Path
    record: RunRecord

    @property
    def status(self) -> Status:
        return self.record.state

    def identity(self) -> dict[str, Value]:
        """The columns that the reader adds to each of the run's rows."""
        return {
            "recipe": self.record.recipe,
            "command": self.record.command,
            "seed": self.record.seed,
            "status": self.status,
            "folder": str(self.folder),
        }


def runs(roots: Roots) -> list[RunInfo]:
    """Every run in or below the folders, once, in natural order.

    A `run.json` that is broken or not ours is named in a warning and skipped.
    """
    found: dict[Path, RunInfo] = {}
    for root in [roots] if isinstance(roots, str | Path) else roots:
        for run in _runs_below(Path(root)):
            found.setdefault(run.folder.resolve(), run)
    return sorted(found.values(), key=lambda run: natural(str(run.folder)))


def scan(roots: Roots, table: str) -> "pl.LazyFrame":
    """One table of every run in or below the folders, the run's identity as columns.

    `runs` gives one row a run. Without any run the frame is empty and has the declared columns.
    """
    import polars as pl

    known = (*TABLES, RUNS.name)
    if table not in known:
        near = did_you_mean(table, known)
        raise RunFolderError(f"no table '{table}'.{near} Tables: {', '.join(known)}.")
    found = runs(roots)
    if table == RUNS.name:
        rows = [_run_row(run) for run in found]
        return pl.LazyFrame(rows, schema=frames.polars_schema(RUNS.columns))
    parts = [part for run in found if (part := _part(run, TABLES[table])) is not None]
    return pl.concat(parts) if parts else pl.LazyFrame(schema=scan_schema(table))


def table_rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """One table of one run folder as plain rows, in the order written; DamagedError."""
    import polars as pl

    try:
        frame = _load(folder, TABLES[table])
        return [] if frame is None else frame.collect().to_dicts()
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise DamagedError(f"table {table} of {folder} cannot be read: {error}") from error


def scan_schema(table: str) -> "pl.Schema":
    """The columns that `scan` gives: `run_id`, the identity, then the table's own."""
    first, *others = TABLES[table].columns
    return frames.polars_schema((first, *IDENTITY, *others))


def settings(folder: Path) -> dict[str, Any]:
    """The run's resolved configuration, flat: `{"optim.beta1": 0.9, ...}`; empty without one."""
    import yaml  # type: ignore[import-untyped]

    try:
        text = (folder / "resolved.yaml").read_text(encoding="utf-8")
        # The same safe loader, written in C where it was built so.
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        _LOG.warning("skipped: %s cannot be read: %s", folder / "resolved.yaml", error)
        return {}
    if not isinstance(content, dict):
        return {}
    content.pop("defaults", None)
    return dict(_flat(content, ""))


def natural(text: str) -> list[tuple[int, int | str]]:
    """A sort key that puts job 10 after job 9."""
    parts = re.split(r"(\d+)", text)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def _runs_below(root: Path) -> Iterator[RunInfo]:
    if not root.is_dir():
        raise RunFolderError(f"no folder '{root}'")
    for where, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if FILE not in files:
            continue
        try:
            yield RunInfo(Path(where), read_record(Path(where)))
        except RunFolderError as error:
            _LOG.warning("skipped: %s", error)
        else:
            folders.clear()


def _run_row(run: RunInfo) -> dict[str, Value]:
    record = run.record
    panels = " ".join(f"{split}={name}" for split, name in sorted(record.panels.items()))
    return {
        "run_id": record.run_id,
        **run.identity(),
        "overrides": " ".join(record.overrides),
        "panels": panels,
        "git_commit": record.git_commit,
        "started": record.started,
        "ended": record.ended,
        "resumed": record.resumed,
        "error": record.error,
    }


def _part(run: RunInfo, table: Table) -> "pl.LazyFrame | None":
    """One run's rows; None, with a warning, where its file is broken or foreign."""
    import polars as pl

    try:
        frame = _load(run.folder, table)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        _LOG.warning("skipped: table %s of %s: %s", table.name, run.folder, reason)
        return None
    if frame is None:
        return None
    identity = [
        pl.lit(run.identity()[column.name], dtype=frames.polars_type(column)).alias(column.name)
        for column in IDENTITY
    ]
    first, *others = table.names
    return frame.select(first, *identity, *others)


def _load(folder: Path, table: Table) -> "pl.LazyFrame | None":
    """None without a file. A run that ends just now may put Parquet in the NDJSON's place."""
    import polars as pl

    lines, parquet = folder / f"{table.name}.ndjson", folder / f"{table.name}.parquet"
    for _ in range(2):
        try:
            frame = frames.read_ndjson(lines, table.name)
        except FileNotFoundError:
            if parquet.exists():
                return _declared(pl.scan_parquet(parquet, glob=False), table)
        else:
            _check_keys(frame, table)
            return frame.lazy()
    return None


def _check_keys(frame: "pl.DataFrame", table: Table) -> None:
    empty = [key for key in table.keys if frame[key].null_count()]
    if empty:
        raise ValueError(f"not such a table: rows without '{empty[0]}'")


def _declared(frame: "pl.LazyFrame", table: Table) -> "pl.LazyFrame":
    """The declared columns, whatever version wrote the file; ValueError where it is foreign."""
    import polars as pl

    there = frame.collect_schema()
    columns = []
    for column in table.columns:
        wanted = frames.polars_type(column)
        if column.name not in there:
            if column.name in table.keys:
                raise ValueError(f"not such a table: it has no column '{column.name}'")
            columns.append(pl.lit(None, dtype=wanted).alias(column.name))
            continue
        found = there[column.name]
        if not (
            found == wanted or found == pl.Null or (found.is_numeric() and wanted.is_numeric())
        ):
            raise ValueError(f"not such a table: column '{column.name}' holds {found}")
        columns.append(pl.col(column.name).cast(wanted))
    return frame.select(columns)


def _flat(content: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
