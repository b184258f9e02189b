"""Two runs game by game: the same games, so that luck with the games cancels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rl.compare import Choice, Comparison, by_run, find_runs, mean
from agentic_rl.errors import RunFolderError
from agentic_rl.results.reader import RunInfo, scan, settings
from agentic_rl.results.schemas import ALL_TYPES
from agentic_rl.results.statistics import mcnemar, paired_bootstrap

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """One evaluation of one run on one split; `rates` holds each game's share won."""

    run: RunInfo
    update: int
    panel: str
    repeats: int
    rates: Mapping[str, float]


def pair(roots: Sequence[str | Path], choice: Choice) -> Comparison:
    """Every run against the first, on each split that both played; refuses unlike panels."""
    import polars as pl

    first, *others = find_runs(roots)
    if not others:
        raise RunFolderError(f"{first.folder} is the only run: name another to pair it with")
    evaluations = by_run([first, *others], "evaluations", task_type=ALL_TYPES)
    rows: list[Row] = []
    for other in others:
        splits = _shared(evaluations[str(first.folder)], evaluations[str(other.folder)])
        if not splits:
            raise RunFolderError(_unshared(first, other, evaluations))
        for split in splits:
            sides = (
                _evaluated(run, evaluations[str(run.folder)], split, choice)
                for run in (other, first)
            )
            rows.append(_paired(split, *sides))
    notes = (
        f"success: {choice.describe()}",
        "difference: `run` minus `against`, with a 95 % bootstrap interval over the games",
        "p: exact McNemar over the games that only one of both wins"
        + (", or wins more often" if any(row["repeats"] > 1 for row in rows) else ""),
    )
    return Comparison(pl.DataFrame(rows), tuple(dict.fromkeys(row["split"] for row in rows)), notes)


def _shared(one: Sequence[Row], other: Sequence[Row]) -> list[str]:
    return sorted({row["split"] for row in one} & {row["split"] for row in other})


def _unshared(first: RunInfo, other: RunInfo, evaluations: Mapping[str, Sequence[Row]]) -> str:
    """Who played what, and how to play what the other did."""
    known, missing = first, other
    scored = {run.folder: bool(evaluations[str(run.folder)]) for run in (first, other)}
    # Rather the run that holds the weights itself than one that scored another's.
    if not scored[first.folder] or (scored[other.folder] and other.record.command == "eval"):
        known, missing = other, first
    said = []
    for run in (first, other):
        splits = sorted({row["split"] for row in evaluations[str(run.folder)]})
        said.append(f"{run.folder} played {', '.join(splits) or 'none'}")
    target, source = settings(known.folder), settings(missing.folder)
    # What `eval` scored lies in another folder than its results.
    weights = source.get("checkpoint") if missing.record.command == "eval" else None
    words = [f"checkpoint={weights or missing.folder}"]
    games = target.get("games.name")
    words += [f"games={games}"] if games not in (None, source.get("games.name")) else []
    words += sorted({f"split={row['split']}" for row in evaluations[str(known.folder)]})[:1]
    return (
        f"no evaluated split is shared: {'; '.join(said)}. Type: agentic-rl eval {' '.join(words)}"
    )


def _evaluated(run: RunInfo, rows: Sequence[Row], split: str, choice: Choice) -> _Evaluated:
    taken = choice.take([row for row in rows if row["split"] == split])
    if not taken:
        raise RunFolderError(f"{run.folder}: no episode on {split} has ended without a failure")
    (row,) = taken
    won: dict[str, list[bool]] = {}
    for task_id, result in _episodes(run.folder, split, row["update"]):
        won.setdefault(task_id, []).append(result)
    rates = {task_id: sum(results) / len(results) for task_id, results in sorted(won.items())}
    return _Evaluated(run, row["update"], row["panel_hash"], row["repeats"], rates)


def _episodes(folder: Path, split: str, update: int) -> list[tuple[str, bool]]:
    """Of one evaluation; those that failed say nothing of the policy."""
    import polars as pl

    frame = scan(folder, "episodes").filter(phase="evaluation", split=split, update=update)
    return frame.filter(pl.col("error").is_null()).select("task_id", "won").collect().rows()


def _paired(split: str, one: _Evaluated, other: _Evaluated) -> Row:
    if one.panel != other.panel:
        played = (
            f"{side.run.folder} played {len(side.rates)} games ({side.panel})"
            for side in (one, other)
        )
        raise RunFolderError(
            f"unlike panels on {split}, not to be paired: {', '.join(played)}."
            " Evaluate both on the same games: agentic-rl eval checkpoint=RUN"
        )
    games = sorted(one.rates.keys() & other.rates.keys())
    if not games:
        raise RunFolderError(f"{one.run.folder} and {other.run.folder} share no game on {split}")
    changes = [one.rates[game] - other.rates[game] for game in games]
    better, worse = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    low, high = paired_bootstrap(changes)
    return {
        "split": split,
        "run": str(one.run.folder),
        "against": str(other.run.folder),
        "update": one.update,
        "update_against": other.update,
        "games": len(games),
        "left_out": len(one.rates.keys() | other.rates.keys()) - len(games),
        "repeats": max(one.repeats, other.repeats),
        "success": mean(one.rates[game] for game in games),
        "success_against": mean(other.rates[game] for game in games),
        "difference": mean(changes),
        "low": low,
        "high": high,
        "better": better,
        "worse": worse,
        "p": mcnemar(better, worse),
    }
