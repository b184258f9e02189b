"""Run folders side by side: one row a run, or one row for all seeds of the same settings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentic_rl.config import FAMILIES
from agentic_rl.errors import RunFolderError
from agentic_rl.results.reader import RunInfo, runs, scan, settings
from agentic_rl.results.schemas import ALL_TYPES, TOKENS_BILLED

if TYPE_CHECKING:
    import polars as pl

Statistic = Literal["last", "best", "window"]
Row = dict[str, Any]

TRAINING = "training"
"""Stands where a split does, for the games that were trained on."""

_TOKENS = "tokens: prefill + sampled + trained, evaluations included"
_INTERVAL = "in brackets the 95 % Wilson interval"
_IGNORED = frozenset({"seed", "overwrite", "recipe", "command"})


@dataclass(frozen=True, slots=True)
class Choice:
    """Which evaluation of a run is shown: the last, the best, or the mean of the last `window`."""

    statistic: Statistic = "last"
    window: int = 3

    def describe(self) -> str:
        if self.statistic == "last":
            return "last evaluation of each run"
        if self.statistic == "best":
            return "best evaluation of each run, chosen on the games that score it: optimistic"
        return f"mean of the last {self.window} evaluations of each run"

    def take(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, ordered by update, that count."""
        scored = [row for row in rows if row["success"] is not None]
        if not scored:
            return []
        if self.statistic == "best":
            return [max(scored, key=lambda row: (row["success"], -row["update"]))]
        return scored[-(1 if self.statistic == "last" else self.window) :]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A table, the splits it has columns for, and what must be said of it."""

    frame: "pl.DataFrame"
    splits: tuple[str, ...]
    notes: tuple[str, ...]


def compare(roots: Sequence[str | Path], choice: Choice) -> Comparison:
    """One row for each run in or below the folders, in the order given."""
    found = find_runs(roots)
    differs = distinctions(found)
    evaluations = by_run(found, "evaluations", task_type=ALL_TYPES)
    updates = by_run(found, "updates")
    splits = tuple(sorted({row["split"] for rows in evaluations.values() for row in rows}))
    rows = []
    for run, differ in zip(found, differs, strict=True):
        evaluated, updated = evaluations[str(run.folder)], updates[str(run.folder)]
        rows.append(
            {
                "run": str(run.folder),
                "recipe": run.record.recipe,
                "command": run.record.command,
                "differs": differ,
                "seed": run.record.seed,
                "seeds": 0,
                "status": run.status,
                # What `eval` evaluates was updated by another run.
                "updates": max((row["update"] for row in (*updated, *evaluated)), default=0),
                **_success(splits, evaluated, updated, choice),
                **_cost(evaluated, updated),
            }
        )
    _count_seeds(rows)
    notes = [_behind(rows), f"success: {choice.describe()}", *_unlike_panels(splits, evaluations)]
    notes.append(_TOKENS)
    if choice.statistic != "window":
        notes.append(_INTERVAL)
    return Comparison(_frame(rows, splits), splits, tuple(notes))


def by_settings(comparison: Comparison) -> Comparison:
    """The runs of the same recipe and settings in one row: how many seeds, means over runs."""
    import polars as pl

    names = (*comparison.splits, TRAINING)
    ranges = [
        column
        for name in names
        for column in (
            pl.col(f"success_{name}").mean(),
            pl.col(f"success_{name}").min().alias(f"lowest_{name}"),
            pl.col(f"success_{name}").max().alias(f"highest_{name}"),
        )
    ]
    means = ("return", "invalid_actions", "tokens", "cost")
    same = ("recipe", "command", "differs")
    frame = comparison.frame.group_by(*same, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("runs"),
        pl.col("seeds").first(),
        (pl.col("status") == "finished").sum().cast(pl.Int64).alias("finished"),
        *ranges,
        *(pl.col(name).cast(pl.Float64).mean() for name in means),
    )
    notes = [note for note in comparison.notes if note != _INTERVAL]
    notes.append("means over the runs of a row, in brackets the lowest and the highest run")
    return Comparison(frame, comparison.splits, tuple(notes))


def find_runs(roots: Sequence[str | Path]) -> list[RunInfo]:
    """The runs in or below each folder in turn, each once; RunFolderError where there is none."""
    found = {run.folder.resolve(): run for root in reversed(roots) for run in reversed(runs(root))}
    if not found:
        where = ", ".join(str(root) for root in roots)
        raise RunFolderError(f"no run in or below {where}. Train one: agentic-rl +recipe=debug")
    return list(reversed(found.values()))


def by_run(found: Sequence[RunInfo], table: str, **wanted: str) -> dict[str, list[Row]]:
    """One table's rows for each run's folder, ordered by update."""
    import polars as pl

    frame = scan([run.folder for run in found], table)
    if wanted:
        frame = frame.filter(*(pl.col(name) == value for name, value in wanted.items()))
    rows: dict[str, list[Row]] = {str(run.folder): [] for run in found}
    for row in frame.collect().sort("update", maintain_order=True).iter_rows(named=True):
        rows[row["folder"]].append(row)
    return rows


def distinctions(found: Sequence[RunInfo]) -> list[str]:
    """For each run what sets it apart from the runs of its recipe and command.

    Its checkpoint is left out where every seed has one: the seeds then stand for the same thing.
    """
    configs = [dict(settings(run.folder)) for run in found]
    kinds: dict[tuple[str | None, str], list[int]] = {}
    for place, run in enumerate(found):
        kinds.setdefault((run.record.recipe, run.record.command), []).append(place)
    said = [""] * len(found)
    for places in kinds.values():
        pairs = {(found[place].record.seed, configs[place].get("checkpoint")) for place in places}
        if len(pairs) == len({seed for seed, _ in pairs}):
            for place in places:
                configs[place].pop("checkpoint", None)
        for place, words in zip(places, differences([configs[i] for i in places]), strict=True):
            said[place] = words
    return said


def differences(configs: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each configuration the keys that differ among them, as they would be typed.

    A component's own options are compared only among runs that name the same component.
    """
    keys = list(dict.fromkeys(key for config in configs for key in config))
    shown: list[list[str]] = [[] for _ in configs]
    for key in keys:
        if key in _IGNORED:
            continue
        values: dict[Any, set[str]] = {}
        for config in configs:
            if key in config:
                values.setdefault(_rivals(key, config), set()).add(_typed(config[key]))
        for place, config in enumerate(configs):
            if key in config and len(values[_rivals(key, config)]) > 1:
                shown[place].append(f"{key.removesuffix('.name')}={_typed(config[key])}")
    return [" ".join(words) for words in shown]


def _rivals(key: str, config: Mapping[str, Any]) -> Any:
    family, _, option = key.partition(".")
    return config.get(f"{family}.name") if family in FAMILIES and option != "name" else None


def _typed(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(_typed, value))}]"
    return str(value)


def _success(
    splits: Sequence[str], evaluated: Sequence[Row], updated: Sequence[Row], choice: Choice
) -> Row:
    found: Row = {}
    chosen: list[Row] = []
    for split in splits:
        rows = choice.take([row for row in evaluated if row["split"] == split])
        single = rows[0] if len(rows) == 1 and choice.statistic != "window" else None
        found[f"success_{split}"] = mean(row["success"] for row in rows)
        found[f"low_{split}"] = single["low"] if single else None
        found[f"high_{split}"] = single["high"] if single else None
        found[f"games_{split}"] = single["n"] if single else None
        found[f"update_{split}"] = rows[-1]["update"] if rows else None
        chosen += rows
    training = choice.take(updated)
    found[f"success_{TRAINING}"] = mean(row["success"] for row in training)
    return found | _per_episode(chosen)


def _per_episode(rows: Sequence[Row]) -> Row:
    """Return and invalid actions of one episode, over all that the row's success rests on."""
    episodes = sum(row["n"] for row in rows)
    if not episodes:
        return {"return": None, "invalid_actions": None}
    known = [row for row in rows if row["reward_mean"] is not None]
    earned = math.fsum(row["n"] * row["reward_mean"] for row in known)
    weight = sum(row["n"] for row in known)
    return {
        "return": earned / weight if weight else None,
        "invalid_actions": sum(row["invalid_actions"] for row in rows) / episodes,
    }


def _cost(evaluated: Sequence[Row], updated: Sequence[Row]) -> Row:
    rows = [*evaluated, *updated]
    costs = [row["cost"] for row in rows if row["cost"] is not None]
    return {
        "tokens": sum(row.get(name) or 0 for row in rows for name in TOKENS_BILLED),
        "cost": math.fsum(costs) if costs else None,
    }


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _count_seeds(rows: Sequence[Row]) -> None:
    """How many seeds of the same recipe and settings have a result to show."""
    seeds: dict[tuple[str | None, str, str], set[int]] = {}
    for row in rows:
        scores = [value for name, value in row.items() if name.startswith("success_")]
        if any(score is not None for score in scores):
            seeds.setdefault(_same(row), set()).add(row["seed"])
    for row in rows:
        row["seeds"] = len(seeds.get(_same(row), ()))


def _same(row: Row) -> tuple[str | None, str, str]:
    return row["recipe"], row["command"], row["differs"]


def _behind(rows: Sequence[Row]) -> str:
    least, most = min(row["seeds"] for row in rows), max(row["seeds"] for row in rows)
    seeds = str(most) if least == most else f"{least} to {most}"
    return (
        f"{len(rows)} run{'' if len(rows) == 1 else 's'},"
        f" {seeds} seed{'' if most == 1 else 's'} with results behind each recipe and settings"
    )


def _unlike_panels(splits: Sequence[str], evaluations: Mapping[str, Sequence[Row]]) -> list[str]:
    notes = []
    for split in splits:
        rows = [row for rows in evaluations.values() for row in rows if row["split"] == split]
        panels = {row["panel_hash"] for row in rows}
        if len(panels) > 1:
            notes.append(f"{split}: {len(panels)} unlike panels of games, not comparable as such")
    return notes


def _frame(rows: Sequence[Row], splits: Sequence[str]) -> "pl.DataFrame":
    import polars as pl

    text = ("run", "recipe", "command", "differs", "status")
    whole = ("seed", "seeds", "updates", "tokens")
    counts = [f"{what}_{split}" for split in splits for what in ("games", "update")]
    kinds: dict[str, Any] = dict.fromkeys(text, pl.String)
    kinds |= dict.fromkeys((*whole, *counts), pl.Int64)
    return pl.DataFrame(rows, schema={name: kinds.get(name, pl.Float64) for name in rows[0]})
