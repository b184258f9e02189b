"""One table of one run folder as a Polars frame, from NDJSON or Parquet, whichever is there.

While both are there the NDJSON counts: Parquet is only made of whole NDJSON, which goes last, and
a run that goes on has NDJSON made of its Parquet, which then goes first.
"""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rl.results.lines import replace_file, to_line, whole_lines
from agentic_rl.results.schemas import TABLES, Column

if TYPE_CHECKING:
    import polars as pl


def polars_type(column: Column) -> "pl.DataType":
    import polars as pl

    kinds = {"text": pl.String, "int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean}
    return kinds[column.kind]()


def polars_schema(columns: tuple[Column, ...]) -> "pl.Schema":
    import polars as pl

    return pl.Schema({column.name: polars_type(column) for column in columns})


def read_ndjson(path: Path, table: str) -> "pl.DataFrame":
    """The whole lines; a column that an older run lacks is null, one of a newer run is left out."""
    import polars as pl

    schema = polars_schema(TABLES[table].columns)
    content = whole_lines(path)
    return (
        pl.read_ndjson(content, schema=schema) if content.strip() else pl.DataFrame(schema=schema)
    )


def to_parquet(folder: Path, table: str) -> None:
    """`<table>.ndjson` becomes `<table>.parquet`; a table without rows is written empty.

    OSError where it cannot be written.
    """
    import polars as pl

    lines, parquet = folder / f"{table}.ndjson", folder / f"{table}.parquet"
    if lines.exists():
        frame = read_ndjson(lines, table)
    elif parquet.exists():
        return
    else:
        frame = pl.DataFrame(schema=polars_schema(TABLES[table].columns))
    try:
        replace_file(parquet, lambda path: frame.write_parquet(path))
    except pl.exceptions.PolarsError as error:
        raise OSError(errno.EIO, " ".join(str(error).split()), str(parquet)) from error
    lines.unlink(missing_ok=True)


def to_ndjson(folder: Path, table: str) -> None:
    """The way back, so that rows can be added; what is NDJSON already stays."""
    lines, parquet = folder / f"{table}.ndjson", folder / f"{table}.parquet"
    if not parquet.exists():
        return
    if not lines.exists():
        import polars as pl

        frame = pl.read_parquet(parquet, glob=False)
        replace_file(lines, lambda path: _write_lines(frame, path))
    parquet.unlink()


def _write_lines(frame: "pl.DataFrame", path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(to_line(row) + "\n" for row in frame.iter_rows(named=True))
        file.flush()
        os.fsync(file.fileno())
