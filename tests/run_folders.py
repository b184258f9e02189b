"""Run folders for tests, made by the real writer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentic_rl.results import TABLES, RunFolder, new_record
from agentic_rl.results.schemas import Column
from agentic_rl.results.statistics import wilson

SAMPLES: Mapping[str, Any] = {"text": "x", "int": 1, "float": 0.5, "bool": True}


def row(table: str, **values: Any) -> dict[str, Any]:
    """A row with every required column, filled with a sample where no value is given."""
    columns = TABLES[table].columns
    return {column.name: _sample(column) for column in columns if column.name != "run_id"} | values


def _sample(column: Column) -> Any:
    return None if column.optional else SAMPLES[column.kind]


def step_row(update: int, step: int, **values: Any) -> dict[str, Any]:
    keys = {"phase": "train", "update": update, "split": "train", "task_id": "game", "branch": 0}
    return row("steps", **keys, step=step, **values)


def update_row(update: int, **values: Any) -> dict[str, Any]:
    tokens = {"tokens_prefill": 100, "tokens_cached": 0, "tokens_sampled": 10, "tokens_trained": 10}
    return row("updates", update=update, **tokens, **values)


def new_run(
    folder: Path,
    config: Mapping[str, Any] | None = None,
    *,
    run_id: str = "",
    seed: int = 0,
    recipe: str = "debug",
    command: str = "train",
) -> RunFolder:
    record = new_record(command, recipe=recipe, seed=seed)
    run = RunFolder.create(folder, replace(record, run_id=run_id or record.run_id))
    run.write_config({"seed": seed, **(config or {})})
    return run


def evaluate(
    run: RunFolder,
    update: int,
    wins: Sequence[bool],
    *,
    split: str = "valid_unseen",
    panel: str = "aaaa",
    repeats: int = 1,
) -> None:
    """Appends an evaluation's episodes and rows; `wins` holds each game's repeats in turn."""
    for number, won in enumerate(wins):
        task, repeat = divmod(number, repeats)
        run.append(
            "episodes",
            [
                row(
                    "episodes",
                    phase="evaluation",
                    update=update,
                    split=split,
                    task_id=f"game-{task:03d}",
                    branch=repeat,
                    repeat=repeat,
                    task_type="pick_and_place_simple",
                    won=won,
                )
            ],
        )
    n, count = len(wins), sum(wins)
    low, high = wilson(count, n)
    run.append(
        "evaluations",
        [
            row(
                "evaluations",
                update=update,
                split=split,
                task_type=kind,
                n=n,
                won=count,
                errors=0,
                success=count / n,
                low=low,
                high=high,
                reward_mean=count / n - 0.1,
                invalid_actions=n,
                panel_hash=panel,
                repeats=repeats,
                tokens_prefill=1000,
                tokens_cached=0,
                tokens_sampled=50,
            )
            for kind in ("all", "pick_and_place_simple")
        ],
    )
