"""Pictures of runs: success by update with its interval, training return, success by task type."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentic_rl.compare import by_run, distinctions, find_runs
from agentic_rl.errors import AgenticRLError, RunFolderError
from agentic_rl.results.reader import RunInfo
from agentic_rl.results.schemas import ALL_TYPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart by the colour-blind; beyond them the line's dashes change."""

DASHES = ("-", "--", ":", "-.")
_PERCENT = (-2, 102)
_MOST = 44
_CUT = " ..."
MOST_RUNS = len(COLOURS) * len(DASHES)


@dataclass(frozen=True, slots=True)
class Curve:
    """One run with its rows, ordered by update."""

    label: str
    evaluations: Sequence[Row]
    updates: Sequence[Row]

    def on(self, split: str, task_type: str = ALL_TYPES) -> list[Row]:
        return [
            row
            for row in self.evaluations
            if row["split"] == split
            and row["task_type"] == task_type
            and row["success"] is not None
        ]


def load_curves(roots: Sequence[str | Path]) -> list[Curve]:
    """The runs in or below the folders; RunFolderError where there are too many to tell apart."""
    found = find_runs(roots)
    if len(found) > MOST_RUNS:
        raise RunFolderError(f"{len(found)} runs are too many for a picture: name fewer folders")
    evaluations, updates = by_run(found, "evaluations"), by_run(found, "updates")
    return [
        Curve(label, evaluations[str(run.folder)], updates[str(run.folder)])
        for run, label in zip(found, _labels(found), strict=True)
    ]


def draw(curves: Sequence[Curve]) -> "Figure":
    """A panel for each split, one for the training return, and a row of bars for each split."""
    figure_class = _matplotlib()
    splits = sorted({row["split"] for curve in curves for row in curve.evaluations})
    types = sorted(
        {row["task_type"] for curve in curves for row in curve.evaluations} - {ALL_TYPES}
    )
    rows = 1 + (len(splits) if types else 0)
    columns = len(splits) + 1
    figure: Figure = figure_class(figsize=(5.2 * columns, 3.6 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, columns)
    for number, split in enumerate(splits):
        _draw_success(figure.add_subplot(grid[0, number]), curves, split)
        if types:
            _draw_types(figure.add_subplot(grid[number + 1, :]), curves, split, types)
    _draw_returns(figure.add_subplot(grid[0, -1]), curves)
    _legend(figure, curves)
    return figure


def save(figure: "Figure", path: Path) -> None:
    """The ending decides the kind of file."""
    known = sorted(figure.canvas.get_supported_filetypes())
    if path.suffix.removeprefix(".") not in known:
        raise RunFolderError(f"'{path}' is no picture's name; it may end in .{', .'.join(known)}")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror}") from error


def _draw_success(axes: "Axes", curves: Sequence[Curve], split: str) -> None:
    for number, curve in enumerate(curves):
        rows = curve.on(split)
        if not rows:
            continue
        updates = [row["update"] for row in rows]
        success, low, high = (
            [100 * row[name] for row in rows] for name in ("success", "low", "high")
        )
        style = _style(number)
        axes.plot(updates, success, marker="o", markersize=4, **style)
        axes.fill_between(updates, low, high, color=style["color"], alpha=0.15, linewidth=0)
        if len(rows) == 1:
            # A band of one update has no width.
            axes.vlines(updates, low, high, style["color"], alpha=0.5)
    games = sorted({row["n"] for curve in curves for row in curve.on(split)})
    said = f"{games[0]} episodes" if len(games) == 1 else "episodes differ"
    panels = {row["panel_hash"] for curve in curves for row in curve.on(split)}
    unlike = f", {len(panels)} unlike panels of games" if len(panels) > 1 else ""
    axes.set_title(f"{split} ({said}{unlike}, 95 % interval)")
    axes.set(xlabel="update", ylabel="success, %", ylim=_PERCENT)
    _tidy(axes)


def _draw_returns(axes: "Axes", curves: Sequence[Curve]) -> None:
    for number, curve in enumerate(curves):
        rows = [row for row in curve.updates if row["reward_mean"] is not None]
        axes.plot(
            [row["update"] for row in rows],
            [row["reward_mean"] for row in rows],
            marker="o" if len(rows) < 2 else None,
            linewidth=1.2,
            **_style(number),
        )
    axes.set_title("training")
    axes.set(xlabel="update", ylabel="mean return")
    _tidy(axes)


def _draw_types(axes: "Axes", curves: Sequence[Curve], split: str, types: Sequence[str]) -> None:
    """Each run's last evaluation as bars, its first as a dash across the bar."""
    width = 0.8 / max(len(curves), 3)
    for number, curve in enumerate(curves):
        for place, kind in enumerate(types):
            rows = curve.on(split, kind)
            if not rows:
                continue
            x = place + width * (number - (len(curves) - 1) / 2)
            first, last = rows[0], rows[-1]
            success = 100 * last["success"]
            reach = [[success - 100 * last["low"]], [100 * last["high"] - success]]
            axes.bar(
                x,
                success,
                width * 0.9,
                yerr=reach,
                color=_style(number)["color"],
                error_kw={"linewidth": 1, "ecolor": "#444444", "capsize": 2},
            )
            if first is not last:
                axes.hlines(
                    100 * first["success"], x - width * 0.45, x + width * 0.45, "#000000", ":"
                )
    axes.set_xticks(range(len(types)), [_words(kind) for kind in types])
    axes.set_title(f"{split} by task type: last evaluation (dotted: first)")
    axes.set(ylabel="success, %", ylim=_PERCENT)
    _tidy(axes, "y")


def _legend(figure: "Figure", curves: Sequence[Curve]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], label=curve.label, **_style(number)) for number, curve in enumerate(curves)
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(3, len(curves)), frameon=False
    )


def _tidy(axes: "Axes", axis: Literal["both", "y"] = "both") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=axis, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if axis == "both":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _style(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number // len(COLOURS)],
    }


def _words(task_type: str) -> str:
    """`pick_clean_then_place_in_recep` on short lines."""
    import textwrap

    return textwrap.fill(task_type.replace("_", " "), 16)


def _short(text: str) -> str:
    """A legend's worth of it; the run's name then says the rest."""
    return text if len(text) <= _MOST else text[:_MOST].rpartition(" ")[0] + _CUT


def _labels(found: Sequence[RunInfo]) -> list[str]:
    """Recipe, what differs and seed: no more than it takes to tell the runs apart."""
    differs = [_short(text) for text in distinctions(found)]
    recipes = {run.record.recipe for run in found}
    seeds = {run.record.seed for run in found}
    labels = []
    for run, differ in zip(found, differs, strict=True):
        words = [run.record.recipe or run.record.command] if len(recipes) > 1 or not differ else []
        words += [differ] if differ else []
        words += [f"seed {run.record.seed}"] if len(seeds) > 1 else []
        labels.append(" ".join(words))
    same = {label for label in labels if labels.count(label) > 1 or label.endswith(_CUT)}
    return [
        f"{label} ({run.folder.name})" if label in same else label
        for run, label in zip(found, labels, strict=True)
    ]


def _matplotlib() -> "type[Figure]":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise AgenticRLError("pictures need matplotlib: pip install 'agentic-rl[plot]'") from None
    return Figure
