"""One table as text, CSV, Parquet or Markdown, to the terminal or into a file."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Literal

from agentic_rl.errors import RunFolderError, UsageError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

FORMATS = ("text", "csv", "parquet", "markdown")

WIDEST = 160
"""Columns of a text table that no terminal shows, where it can be made to fit."""

_PATHS = ("run", "against")
_LEAST = 20
_LINES = 3
"""How far `differs` is folded: its least width, and its most lines."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table ready to read: words only; `right` names the columns to align right.

    `spare` names the columns that text may leave out, in that order, where there is no room.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[str]
    notes: Sequence[str]
    spare: Sequence[str] = ()


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
    """For what may not be a terminal: as wide as it needs to be, or WIDEST if it can be less."""
    from io import StringIO

    from rich.console import Console

    buffer = StringIO()
    console = Console(file=buffer, width=10_000, force_terminal=False, color_system=None)
    if cells.spare:
        cells = fitted(cells if _width(cells) <= WIDEST else narrowed(cells), WIDEST)
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

    console = Console(highlight=False)
    fewer = narrowed(cells)
    if fewer.spare:
        fewer = fitted(fewer, console.width)
        # What still does not fit is broken by the terminal: rich would cut numbers.
        console.print(_table(fewer), width=max(console.width, _width(fewer)), crop=False)
    else:
        console.print(_table(fewer))
    for note in fewer.notes:
        console.print(note, markup=False)


def narrowed(cells: Cells) -> Cells:
    """What all rows share is said once, below: a terminal is narrow."""
    paths = [place for place, name in enumerate(cells.head) if name in _PATHS]
    if not cells.rows or len(cells.rows) == len(paths) == 1:
        return cells
    columns = list(zip(*cells.rows, strict=True))
    notes = []
    if paths:
        short, said = _short_paths([path for place in paths for path in columns[place]])
        notes.append(said)
        for place in paths:
            columns[place] = tuple(short[path] for path in columns[place])
    same = [place for place in range(1, len(columns)) if len(set(columns[place])) == 1]
    same = [i for i in same if cells.head[i] != "run"] if len(cells.rows) > 1 else []
    words = [f"{cells.head[i]} {columns[i][0]}" for i in same if cells.head[i] != "differs"]
    if words:
        notes.append(f"the same in all: {', '.join(words)}")
    rows = list(zip(*columns, strict=True))
    return _without(replace(cells, rows=rows, notes=[*notes, *cells.notes]), same)


def _without(cells: Cells, places: Sequence[int]) -> Cells:
    kept = [place for place in range(len(cells.head)) if place not in places]
    rows = [tuple(row[place] for place in kept) for row in cells.rows]
    return replace(cells, head=[cells.head[place] for place in kept], rows=rows)


def _short_paths(paths: Sequence[str]) -> tuple[dict[str, str], str]:
    """The paths by their ends, and where they lie."""
    parent = os.path.commonpath([Path(path).parent for path in paths])
    below = {path: os.path.relpath(path, parent) for path in paths}
    short = shortest_tails(below.values())
    whole = all(tail == path for path, tail in short.items())
    said = f"runs {'in' if whole else 'below'} {parent or '.'}"
    return {path: short[tail] for path, tail in below.items()}, said


def shortest_tails(paths: Iterable[str]) -> dict[str, str]:
    """Each path's end, as long as it takes to tell it from the others; more than a job's number."""
    parts = {path: Path(path).parts for path in paths}
    ends = Counter(own[-n:] for own in parts.values() for n in range(1, len(own) + 1))
    tails = {}
    for path, own in parts.items():
        least = 2 if own[-1:] and own[-1].isdecimal() else 1
        sizes = range(least, len(own))
        tails[path] = str(Path(*next((own[-n:] for n in sizes if ends[own[-n:]] == 1), own)))
    return tails


def fitted(cells: Cells, width: int) -> Cells:
    """`differs` folded at spaces, then the spare columns left out until the table fits."""
    spare = [name for name in cells.spare if name in cells.head]
    for count in range(len(spare) + 1):
        places = [cells.head.index(name) for name in spare[:count]]
        fewer = _folded(_without(cells, places), width)
        if _width(fewer) <= width:
            break
    if not count:
        return fewer
    said = f"no room for {', '.join(spare[:count])}: a wider terminal or --format csv shows all"
    return replace(fewer, notes=[*fewer.notes, said])


def _folded(cells: Cells, width: int) -> Cells:
    """With `differs` as narrow as it must be, in so many lines that it stays a table."""
    excess = _width(cells) - width
    if excess <= 0 or "differs" not in cells.head:
        return cells
    place = cells.head.index("differs")
    room = max(_LEAST, max(len(row[place]) for row in cells.rows) - excess)
    fold = TextWrapper(room, max_lines=_LINES, placeholder=" …", break_on_hyphens=False).fill
    rows = [
        (*row[:place], fold(_shorter_words(row[place], room)), *row[place + 1 :])
        for row in cells.rows
    ]
    return replace(cells, rows=rows)


def _shorter_words(words: str, room: int) -> str:
    """Of `key=value` the end says more than the beginning."""
    return " ".join(
        word if len(word) <= room else f"…{word[1 - room :]}" for word in words.split(" ")
    )


def _width(cells: Cells) -> int:
    """Of the whole table with nothing folded or cut."""
    from rich.console import Console

    console = Console(width=10_000)
    return console.measure(_table(cells)).maximum


def _table(cells: Cells) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
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
