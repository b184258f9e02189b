"""What a person sees while a run goes on: bars on a terminal, lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH = 120


class Bar:
    """One bar; `advance` is cheap and may come from any finished trajectory."""

    def __init__(self, advance: object = None) -> None:
        self._advance = advance

    def advance(self) -> None:
        if callable(self._advance):
            self._advance()


class Console:
    """Prints to standard error, so that standard output stays free for results."""

    def __init__(self, *, bars: bool = True) -> None:
        from rich.console import Console as RichConsole

        # Lines in a log are not folded to the 80 columns of a terminal that is not there.
        width = None if sys.stderr.isatty() else _WIDTH
        self._rich = RichConsole(file=sys.stderr, highlight=False, soft_wrap=True, width=width)
        self._bars = bars and self._rich.is_terminal and self._rich.is_interactive
        self._started = time.monotonic()

    def line(self, text: str) -> None:
        """One line with the seconds since the start; it scrolls above the bars."""
        seconds = time.monotonic() - self._started
        self._rich.print(f"[{seconds:7.1f}s] {text}", markup=False)

    def warn(self, text: str) -> None:
        self.line(f"warning: {text}")

    def table(self, table: "Table") -> None:
        self._rich.print(table)

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Bar]:
        """A bar that goes when its work is done; nothing where there is no terminal."""
        if not self._bars:
            yield Bar()
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self._rich, transient=True) as progress:
            task = progress.add_task(what, total=total)
            yield Bar(lambda: progress.advance(task))
