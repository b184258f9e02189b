"""The closing table of a run, and what to type next."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentic_rl.results.reader import table_rows
from agentic_rl.session import Session
from agentic_rl.tabulate import Row

if TYPE_CHECKING:
    from rich.table import Table


def print_summary(session: Session) -> None:
    """First and last evaluation of each split, tokens and seconds; then the next command."""
    folder = session.folder.path
    if session.experiment.command == "train":
        _print_training(session, table_rows(folder, "evaluations"), table_rows(folder, "updates"))
        if session.experiment.updates:
            session.console.line(f"next: agentic-rl eval checkpoint={session.typed} split=all")
    session.console.line(f"next: agentic-rl compare {session.typed}")


def print_evaluations(session: Session, rows: Sequence[Row]) -> None:
    from rich.table import Table

    table = Table(title=f"{_what(session)}, {session.place}")
    for name in ("split", "task type", "won", "success", "95 %", "steps", "invalid"):
        table.add_column(name, justify="left" if name in ("split", "task type") else "right")
    for row in rows:
        table.add_row(
            row["split"],
            row["task_type"],
            f"{row['won']}/{row['n']}",
            _percent(row["success"]),
            _interval(row),
            "-" if row["steps_mean"] is None else f"{row['steps_mean']:.1f}",
            str(row["invalid_actions"]),
        )
    session.console.table(table)


def _print_training(session: Session, evaluations: Sequence[Row], updates: Sequence[Row]) -> None:
    totals = [row for row in evaluations if row["task_type"] == "all"]
    if totals:
        session.console.table(_success_table(session, totals))
    parts = ("seconds_rollout", "seconds_update", "seconds_other")
    trained = math.fsum(row[part] for row in updates for part in parts)
    evaluated = math.fsum(row["seconds"] for row in totals)
    tokens = sum(row["tokens_sampled"] for row in updates)
    count = f"{len(updates)} update{'s' if len(updates) != 1 else ''}"
    session.console.line(
        f"{count} in {trained:.0f} s, evaluations in {evaluated:.0f} s,"
        f" {tokens:,} tokens sampled in training; all in {session.place}"
    )


def _success_table(session: Session, totals: Sequence[Row]) -> "Table":
    """Success of each split at the first and the last evaluation."""
    from rich.table import Table

    table = Table(title=f"{session.experiment.recipe or 'train'}, {session.place}")
    first, last = totals[0]["update"], totals[-1]["update"]
    moments = [f"update {update}" for update in dict.fromkeys((first, last))]
    for name in ("split", *moments, "95 %", "games"):
        table.add_column(name, justify="left" if name == "split" else "right")
    for split in dict.fromkeys(row["split"] for row in totals):
        mine = [row for row in totals if row["split"] == split]
        table.add_row(
            split,
            *(_percent(row["success"]) for row in (mine[0], mine[-1])[-len(moments) :]),
            _interval(mine[-1]),
            str(mine[-1]["n"]),
        )
    return table


def _what(session: Session) -> str:
    """What an evaluation scored."""
    experiment = session.experiment
    weights = experiment.checkpoint or "base weights, nothing imitated or trained"
    return f"{experiment.recipe or session.model()}: {weights}"


def _interval(row: Row) -> str:
    low, high = row["low"], row["high"]
    return "-" if low is None else f"{100 * low:.1f} to {100 * high:.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"
