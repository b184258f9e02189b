"""`eval` starts from its checkpoint's own run, under the keys that were typed."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentic_rl.cli import dispatch
from agentic_rl.results import read_record
from agentic_rl.results.reader import settings
from tests.processes import tables

TRAIN = (
    "+recipe=debug",
    "updates=4",
    "games_per_update=2",
    "group_size=2",
    "games.valid_unseen=4",
    "games.valid_seen=3",
    "evaluation.every=2",
    "save.every=2",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that holds a finished run called `run`; it is the working folder."""
    folder = tmp_path_factory.mktemp("eval")
    before = Path.cwd()
    os.chdir(folder)
    assert dispatch([*TRAIN, "hydra.run.dir=run"]) == 0
    yield folder
    os.chdir(before)


def evaluate(folder: Path, *argv: str) -> dict[str, list[dict[str, object]]]:
    name = f"e{len(list(folder.iterdir()))}"
    assert dispatch(["eval", *argv, f"hydra.run.dir={name}"]) == 0
    assert read_record(folder / name).command == "eval"
    return tables(folder / name)


@pytest.mark.parametrize(("checkpoint", "update"), [("run", 4), ("run/checkpoints/update-2", 2)])
def test_eval_equals_the_evaluation_in_training(place: Path, checkpoint: str, update: int) -> None:
    found = evaluate(place, f"checkpoint={checkpoint}")
    trained = tables(place / "run")
    mine = [row for row in trained["evaluations"] if row["update"] == update]
    assert found["evaluations"] == mine
    played = [
        row
        for row in trained["episodes"]
        if row["update"] == update and row["phase"] == "evaluation"
    ]
    assert found["episodes"] == played


def test_typed_keys_lie_over_the_saved_ones(place: Path) -> None:
    argv = ("checkpoint=run", "evaluation.repeats=2", "split=valid_seen", "protocol=think_action")
    assert dispatch(["eval", *argv, "protocol.history_length=1", "hydra.run.dir=typed"]) == 0
    saved = settings(place / "typed")
    assert saved["evaluation.splits"] == ["valid_seen"]
    assert saved["protocol.name"] == "think_action"
    assert saved["protocol.history_length"] == 1
    assert "protocol.body" not in saved
    assert saved["rollout.max_steps"] == 12, "a key that was not typed is the run's own"
    rows = tables(place / "typed")["episodes"]
    assert len(rows) == 3 * 2
    assert len({(row["task_id"], row["branch"]) for row in rows}) == 6


def test_all_splits(place: Path) -> None:
    rows = evaluate(place, "checkpoint=run", "split=all")["evaluations"]
    assert {row["split"]: row["n"] for row in rows if row["task_type"] == "all"} == {
        "valid_seen": 3,
        "valid_unseen": 4,
    }


def test_a_split_named_twice_is_played_once(place: Path) -> None:
    rows = evaluate(place, "checkpoint=run", "split=[valid_seen,valid_seen]")
    assert len(rows["episodes"]) == 3
    assert [row["n"] for row in rows["evaluations"] if row["task_type"] == "all"] == [3]


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"seed: [", "expected"), (b"- a", "holds a list"), (b"\xff\xfe\x00", "cannot be read")],
)
def test_a_damaged_configuration_is_one_line(
    content: bytes, says: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(place / "run", place / "damaged", dirs_exist_ok=True)
    (place / "damaged" / "resolved.yaml").write_bytes(content)
    for argv in (["resume", "damaged"], ["eval", "checkpoint=damaged", "hydra.run.dir=none"]):
        assert dispatch(argv) == 1
        (line,) = capfd.readouterr().err.splitlines()
        assert "resolved.yaml" in line
        assert says in line, line


def test_a_run_that_never_began_says_how_to_start_it(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(place / "run", place / "never")
    (place / "never" / "resolved.yaml").unlink()
    assert dispatch(["resume", "never"]) == 1
    assert "overwrite=true" in capfd.readouterr().err


def test_base_weights_of_a_recipe(place: Path) -> None:
    rows = evaluate(place, *TRAIN)["evaluations"]
    start = [row for row in tables(place / "run")["evaluations"] if row["update"] == 0]
    assert rows == start


def test_an_evaluation_runs_again_from_its_own_configuration(place: Path) -> None:
    assert dispatch(["eval", "checkpoint=run", "hydra.run.dir=first"]) == 0
    again = ["--config-dir", "first", "--config-name", "resolved", "hydra.run.dir=second"]
    assert dispatch(again) == 0
    assert tables(place / "second") == tables(place / "first")


def test_an_interrupted_evaluation_plays_only_what_is_missing(place: Path) -> None:
    assert dispatch(["eval", "checkpoint=run", "hydra.run.dir=cut"]) == 0
    whole = tables(place / "cut")
    _interrupt(place / "cut", episodes=2)
    assert dispatch(["resume", "cut"]) == 0
    assert tables(place / "cut") == whole


def _interrupt(folder: Path, episodes: int) -> None:
    """As a kill would leave it: the first episodes, the third with steps only."""
    from dataclasses import replace

    from agentic_rl.results import frames
    from agentic_rl.results.record import write_record

    for name in ("updates", "evaluations", "episodes", "steps"):
        frames.to_ndjson(folder, name)
    lines = (folder / "episodes.ndjson").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "episodes.ndjson").write_text("".join(lines[:episodes]) + lines[episodes][:20])
    (folder / "evaluations.ndjson").unlink()
    write_record(folder, replace(read_record(folder), status="stopped"))
