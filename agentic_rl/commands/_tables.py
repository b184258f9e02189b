"""One table as text, CSV, Parquet or Markdown, to the terminal or into a file."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentic_rl.errors import RunFolderError, UsageError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

FORMATS = ("text", "csv", "parquet", "markdown")


@dataclass(frozen=True, slots=True)
class Cells:
    """A table ready to read: words only; `right` names the columns to align right."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[str]
    notes: Sequence[str]


def write_table(frame: "pl.DataFrame", cells: Cells, form: str, out: Path | None) -> None:
    """The numbers for CSV and Parquet, the words for text and Markdown."""
    if form == "parquet":
        _write_parquet(frame, out)
    elif form == "csv":
        _write(frame.write_csv(), out)
    elif form == "markdown":
        _write(markdown(cells), out)
    else:
        write_text(cells, out)


def write_text(cells: Cells, out: Path | None = None) -> None:
    """Fitted to the terminal where there is one."""
    if out is not None or not sys.stdout.isatty():
        _write(text(cells), out)
    else:
        _print(cells)


def text(cells: Cells) -> str:
    """As wide as it needs to be: what reads it may not be a terminal."""
    from io import StringIO

    from rich.console import Console

    buffer = StringIO()
    console = Console(file=buffer, width=10_000, force_terminal=False, color_system=None)
    console.print(_table(cells))
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join([*(line for line in lines if line), "", *cells.notes]) + "\n"


def markdown(cells: Cells) -> str:
    rule = ["---:" if name in cells.right else "---" for name in cells.head]
    rows = [[word.replace("|", "\\|") for word in row] for row in (cells.head, *cells.rows)]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])]
    return "\n".join([*lines, "", *(f"- {note}" for note in cells.notes)]) + "\n"


def _print(cells: Cells) -> None:
    from rich.console import Console

    fewer = narrowed(cells)
    console = Console(highlight=False)
    console.print(_table(fewer))
    for note in fewer.notes:
        console.print(note, markup=False)


def narrowed(cells: Cells) -> Cells:
    """What all rows share is said once, below: a terminal is narrow."""
    if len(cells.rows) < 2:
        return cells
    columns = list(zip(*cells.rows, strict=True))
    notes = []
    if cells.head[0] == "run":
        parent = os.path.commonpath(columns[0])
        columns[0] = tuple(os.path.relpath(name, parent) for name in columns[0])
        notes.append(f"runs in {parent}")
    same = {place for place in range(1, len(columns)) if len(set(columns[place])) == 1}
    if same:
        said = ", ".join(f"{cells.head[place]} {columns[place][0]}" for place in sorted(same))
        notes.append(f"the same in all: {said}")
    kept = [place for place in range(len(columns)) if place not in same]
    rows = list(zip(*(columns[place] for place in kept), strict=True))
    return Cells([cells.head[place] for place in kept], rows, cells.right, [*notes, *cells.notes])


def _table(cells: Cells) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in cells.head:
        number = name in cells.right
        side: Literal["right", "left"] = "right" if number else "left"
        table.add_column(Text(name), justify=side, overflow="fold", no_wrap=number)
    for row in cells.rows:
        table.add_row(*map(Text, row))
    return table


def _write(content: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(content)
        return
    try:
        out.write_text(content, encoding="utf-8")
    except OSError as error:
        raise RunFolderError(f"{out} cannot be written: {error.strerror}") from error


def _write_parquet(frame: "pl.DataFrame", out: Path | None) -> None:
    if out is None:
        raise UsageError("--format parquet needs --out FILE")
    try:
        frame.write_parquet(out)
    except OSError as error:
        raise RunFolderError(f"{out} cannot be written: {error.strerror or error}") from error
