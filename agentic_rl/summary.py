"""The closing table of a run, and what to type next."""

from collections.abc import Sequence
from pathlib import Path

from agentic_rl.results.reader import table_rows
from agentic_rl.session import Session
from agentic_rl.tabulate import Row


def print_summary(session: Session) -> None:
    """First and last evaluation of each split, tokens and seconds; then the next command."""
    folder = session.folder.path
    if session.experiment.command == "train":
        _print_training(session, table_rows(folder, "evaluations"), table_rows(folder, "updates"))
        session.console.line(f"next: agentic-rl eval checkpoint={_shown(folder)} split=all")
    session.console.line(f"next: agentic-rl compare {_shown(folder)}")


def print_evaluations(session: Session, rows: Sequence[Row]) -> None:
    from rich.table import Table

    table = Table(title=f"{session.model()}, {session.folder.path}")
    for name in ("split", "task type", "won", "success", "95 %", "steps", "invalid"):
        table.add_column(name, justify="left" if name in ("split", "task type") else "right")
    for row in rows:
        table.add_row(
            row["split"],
            row["task_type"],
            f"{row['won']}/{row['n']}",
            _percent(row["success"]),
            f"{_percent(row['low'])} to {_percent(row['high'])}",
            "-" if row["steps_mean"] is None else f"{row['steps_mean']:.1f}",
            str(row["invalid_actions"]),
        )
    session.console.table(table)


def _print_training(session: Session, evaluations: Sequence[Row], updates: Sequence[Row]) -> None:
    from rich.table import Table

    table = Table(title=f"{session.experiment.recipe or 'train'}, {session.folder.path}")
    for name in ("split", "first", "last", "95 %", "games"):
        table.add_column(name, justify="left" if name == "split" else "right")
    totals = [row for row in evaluations if row["task_type"] == "all"]
    for split in dict.fromkeys(row["split"] for row in totals):
        mine = [row for row in totals if row["split"] == split]
        first, last = mine[0], mine[-1]
        table.add_row(
            split,
            f"{_percent(first['success'])} (update {first['update']})",
            f"{_percent(last['success'])} (update {last['update']})",
            f"{_percent(last['low'])} to {_percent(last['high'])}",
            str(last["n"]),
        )
    session.console.table(table)
    seconds = sum(
        row["seconds_rollout"] + row["seconds_update"] + row["seconds_other"] for row in updates
    )
    tokens = sum(row["tokens_sampled"] for row in updates)
    session.console.line(
        f"{len(updates)} updates in {seconds:.0f} s, {tokens:,} tokens sampled;"
        f" tables and checkpoints in {session.folder.path}"
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _shown(folder: Path) -> Path:
    """As the user would type it: relative where it lies below the working folder."""
    here = Path.cwd()
    return (
        folder.relative_to(here) if folder.is_absolute() and folder.is_relative_to(here) else folder
    )
