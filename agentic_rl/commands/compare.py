"""`agentic-rl compare [FOLDER ...]`: run folders side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentic_rl.commands._tables import Cells
    from agentic_rl.compare import Comparison

HELP = "runs side by side: agentic-rl compare outputs/ [--pair] [--format markdown]"
HYDRA = False

NOTHING = "-"


def main(argv: list[str]) -> int:
    from agentic_rl.commands._tables import write_table
    from agentic_rl.compare import Choice, by_settings, compare
    from agentic_rl.errors import UsageError
    from agentic_rl.pairs import pair

    options = _parse(argv)
    choice = Choice(options.statistic, options.window)
    if options.pair:
        if options.statistic == "window" or options.group:
            raise UsageError("--pair goes with --statistic last or best, and without --group")
        paired = pair(options.folders, choice)
        write_table(paired.frame, pair_cells(paired), options.format, options.out)
        return 0
    compared = compare(options.folders, choice)
    if options.group:
        compared = by_settings(compared)
    cells = group_cells(compared) if options.group else run_cells(compared)
    write_table(compared.frame, cells, options.format, options.out)
    return 0


def run_cells(comparison: "Comparison") -> "Cells":
    """One row a run."""
    from agentic_rl.commands._tables import Cells

    splits = comparison.splits
    rows = []
    for row in comparison.frame.iter_rows(named=True):
        success = [
            _rate(row, f"success_{split}", f"low_{split}", f"high_{split}") for split in splits
        ]
        rows.append(
            [
                row["run"],
                row["recipe"] or NOTHING,
                row["command"],
                row["differs"] or NOTHING,
                str(row["seed"]),
                str(row["seeds"]),
                row["status"],
                str(row["updates"]),
                *success,
                *_tail(row),
            ]
        )
    words = ["run", "recipe", "command", "differs"]
    head = [*words, "seed", "seeds", "status", "updates", *splits, *_TAIL]
    right = {"seed", "seeds", "updates", *splits, *_TAIL}
    return Cells(head, rows, frozenset(right), comparison.notes, _SPARE)


def group_cells(comparison: "Comparison") -> "Cells":
    """One row for each recipe and its settings."""
    from agentic_rl.commands._tables import Cells

    splits = comparison.splits
    rows = [
        [
            row["recipe"] or NOTHING,
            row["command"],
            row["differs"] or NOTHING,
            str(row["runs"]),
            str(row["seeds"]),
            str(row["finished"]),
            *(
                _rate(row, f"success_{name}", f"lowest_{name}", f"highest_{name}")
                for name in splits
            ),
            *_tail(row),
        ]
        for row in comparison.frame.iter_rows(named=True)
    ]
    head = ["recipe", "command", "differs", "runs", "seeds", "finished", *splits, *_TAIL]
    right = {"runs", "seeds", "finished", *splits, *_TAIL}
    return Cells(head, rows, frozenset(right), comparison.notes, _SPARE)


def pair_cells(comparison: "Comparison") -> "Cells":
    """One row for each run and split, against the first run."""
    from agentic_rl.commands._tables import Cells

    rows = [
        [
            row["split"],
            row["run"],
            row["against"],
            str(row["games"]),
            str(row["left_out"]),
            _percent(row["success"]),
            _percent(row["success_against"]),
            f"{100 * row['difference']:+.1f} [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]",
            str(row["better"]),
            str(row["worse"]),
            f"{row['p']:.3g}",
        ]
        for row in comparison.frame.iter_rows(named=True)
    ]
    words = ["split", "run", "against"]
    numbers = ["games", "left out", "success", "success against", "difference", "better", "worse"]
    right = frozenset([*numbers, "p"])
    spare = ("left out", "games", "success against", "success", "better", "worse")
    return Cells([*words, *numbers, "p"], rows, right, comparison.notes, spare)


_SPARE = (
    *("cost", "seeds", "invalid", "tokens", "return", "training", "finished"),
    *("status", "command", "seed", "updates", "differs", "recipe"),
)
"""Left out, one after another, where a text table is wider than what it is read on."""

_TAIL = ("training", "return", "invalid", "tokens", "cost")


def _tail(row: dict[str, Any]) -> list[str]:
    return [
        _percent(row["success_training"]),
        _number(row["return"], 3),
        _number(row["invalid_actions"], 2),
        _short(row["tokens"]),
        _number(row["cost"], 2),
    ]


def _rate(row: dict[str, Any], name: str, low: str, high: str) -> str:
    if row[name] is None or row[low] is None or row[high] is None:
        return _percent(row[name])
    return f"{_percent(row[name])} [{100 * row[low]:.1f}, {100 * row[high]:.1f}]"


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}"


def _parse(argv: list[str]) -> Any:
    from agentic_rl.commands._arguments import Arguments
    from agentic_rl.commands._tables import FORMATS

    parser = Arguments("compare", "One row for each run in or below the folders.")
    add = parser.add_argument
    where = "run folders, or folders of runs; outputs where none is named"
    add("folders", nargs="*", default=["outputs"], metavar="FOLDER", help=where)
    which = "which evaluation of a run is shown: the last, the best, or the mean of the last N"
    add("--statistic", choices=("last", "best", "window"), default="last", help=which)
    many = "how many evaluations --statistic window averages (3)"
    add("--window", type=int, default=3, metavar="N", help=many)
    add("--group", action="store_true", help="one row for all seeds of the same settings")
    add("--pair", action="store_true", help="each run against the first, game by game")
    form = (
        "text is fitted to the terminal, to 160 columns where there is none; the others are whole"
    )
    add("--format", choices=FORMATS, default="text", help=form)
    add("--out", type=Path, metavar="FILE", help="write the table there, not to the terminal")
    options = parser.parse_args(argv)
    if options.window < 1:
        parser.error("--window is below 1")
    return options
