"""A run that is killed, stopped or finished goes on as if nothing had happened."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from agentic_rl import checkpoint as checkpoints
from agentic_rl.cli import dispatch
from agentic_rl.results import TABLES, frames, read_record
from agentic_rl.results.checkpoints import read_checkpoints
from agentic_rl.results.reader import table_rows
from agentic_rl.training import Checkpoint, Usage
from tests.processes import begin, call, tables
from tests.run_folders import new_run, row, update_row

RUN = (
    "+recipe=debug",
    "updates=6",
    "games_per_update=2",
    "group_size=3",
    "games.valid_unseen=4",
    "evaluation.every=2",
    "save.every=2",
)
KILLS = int(os.environ.get("AGENTIC_RL_KILLS", "6"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """An uninterrupted run and the seconds it took."""
    folder = tmp_path_factory.mktemp("whole")
    started = time.monotonic()
    done = call(*RUN, "hydra.run.dir=run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run", time.monotonic() - started


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(KILLS))
def test_kill_and_resume_equals_an_uninterrupted_run(
    kill: int, whole: tuple[Path, float], tmp_path: Path
) -> None:
    expected, seconds = whole
    delay = random.Random(kill).uniform(0.1, seconds)
    process = begin(*RUN, "hydra.run.dir=run", cwd=tmp_path)
    time.sleep(delay)
    process.kill()
    process.communicate()
    run = tmp_path / "run"
    if not (run / "resolved.yaml").is_file():
        again = call(*RUN, "overwrite=true", "hydra.run.dir=run", cwd=tmp_path)
    elif read_record(run).state == "finished":
        again = None
    else:
        assert read_record(run).state == "interrupted"
        again = call("resume", "run", cwd=tmp_path)
    assert again is None or again.returncode == 0, again.stderr
    assert read_record(run).state == "finished"
    assert tables(run) == tables(expected)


@pytest.mark.parametrize("line", [b"{junk", b"null", b"\0" * 9, b'{"a":1}'], ids=repr)
@pytest.mark.parametrize("file", ["updates", "episodes", "steps", "evaluations", "checkpoints"])
def test_a_damaged_table_is_one_line(
    file: str,
    line: bytes,
    one_update: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(one_update, "run")
    for name in TABLES:
        frames.to_ndjson(Path("run"), name)
    (table,) = Path("run").glob(f"{file}.*")
    table.write_bytes(line + b"\n" + table.read_bytes())
    assert dispatch(["resume", "run", "updates=2"]) == 1
    (said,) = capfd.readouterr().err.splitlines()
    assert file in said


@pytest.fixture(scope="module")
def one_update(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("damaged")
    assert call(*RUN, "updates=1", "hydra.run.dir=run", cwd=folder).returncode == 0
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_a_run_that_can_go_on(
    number: signal.Signals, whole: tuple[Path, float], tmp_path: Path
) -> None:
    process = begin(*RUN, "hydra.run.dir=run", cwd=tmp_path)
    run = tmp_path / "run"
    while not (run / "updates.ndjson").is_file():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert read_record(run).status == "stopped"
    assert "agentic-rl resume run" in said.splitlines()[-1]
    done = len(table_rows(run, "updates"))
    assert read_checkpoints(run)[-1].update == done, "what was learned is saved on the way out"
    assert call("resume", "run", cwd=tmp_path).returncode == 0
    assert tables(run) == tables(whole[0])


@pytest.mark.slow
def test_a_run_that_nobody_reads_any_more_can_go_on(
    whole: tuple[Path, float], tmp_path: Path
) -> None:
    process = begin(*RUN, "save.every=0", "hydra.run.dir=run", cwd=tmp_path)
    assert process.stderr is not None
    while "update 1/6" not in process.stderr.readline():
        assert process.poll() is None
    process.stderr.close()
    assert process.wait(timeout=20) != 0
    run = tmp_path / "run"
    done = len(table_rows(run, "updates"))
    assert 0 < done < 6
    assert read_checkpoints(run)[-1].update == done, "the weights are those after the last row"
    assert call("resume", "run", cwd=tmp_path).returncode == 0
    assert tables(run) == tables(whole[0])


@pytest.mark.slow
def test_a_budget_stops_a_run_that_can_go_on(whole: tuple[Path, float], tmp_path: Path) -> None:
    spent = sum(
        row["tokens_prefill"] + row["tokens_sampled"] + row["tokens_trained"]
        for row in table_rows(whole[0], "updates")
    )
    run = tmp_path / "run"
    limit = f"budget.max_tokens={spent // 2}"
    done = call(*RUN, limit, "evaluation.every=0", "hydra.run.dir=run", cwd=tmp_path)
    assert done.returncode == 0
    assert "budget.max_tokens" in done.stderr
    record = read_record(run)
    assert record.status == "stopped"
    used = [
        row["tokens_prefill"] + row["tokens_sampled"] + row["tokens_trained"]
        for row in table_rows(run, "updates")
    ]
    assert sum(used) <= spent // 2 < sum(used) + max(used) * 2
    assert read_checkpoints(run)[-1].update == len(used)


@pytest.mark.slow
def test_a_budget_holds_in_an_evaluation_and_counts_it_when_the_run_goes_on(
    tmp_path: Path,
) -> None:
    line = (*RUN, "updates=0", "games.valid_unseen=40", "rollout.concurrency=1")
    assert call(*line, "hydra.run.dir=whole", cwd=tmp_path).returncode == 0
    limit = _tokens(tmp_path / "whole") // 2
    budget = f"budget.max_tokens={limit}"
    assert call(*line, budget, "hydra.run.dir=run", cwd=tmp_path).returncode == 0
    run = tmp_path / "run"
    for _ in range(2):
        assert read_record(run).status == "stopped"
        assert 0.8 * limit < _tokens(run) < 1.2 * limit
        again = call("resume", "run", cwd=tmp_path)
        assert "raise it in run/resolved.yaml" in again.stderr


def _tokens(run: Path) -> int:
    rows = table_rows(run, "episodes")
    return sum(row["tokens_prefill"] + row["tokens_sampled"] for row in rows)


def test_what_was_used_is_known_from_the_rows_and_the_last_checkpoint(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    tokens = {"tokens_prefill": 7, "tokens_cached": 0, "tokens_sampled": 1, "tokens_trained": 0}
    played = row("episodes", phase="evaluation", update=1, **tokens)
    run.append("updates", [update_row(1)])
    run.append("episodes", [played])
    assert checkpoints.used(tmp_path) == Usage(107, 0, 11, 10), "before the first checkpoint"
    at = {"spent_prefill": 100, "spent_cached": 0, "spent_sampled": 10, "spent_trained": 10}
    saved = Checkpoint("a", "somewhere://a", "somewhere://a")
    run.add_checkpoint(saved, 1, {**at, "spent_evaluation": 0})
    assert checkpoints.used(tmp_path) == Usage(107, 0, 11, 10), "its evaluation came after it"
    run.add_checkpoint(saved, 1, {**at, "spent_prefill": 107, "spent_evaluation": 1})
    assert checkpoints.used(tmp_path) == Usage(107, 0, 10, 10), "its evaluation came before it"


@pytest.mark.slow
def test_a_finished_run_goes_on_to_more_updates(tmp_path: Path) -> None:
    assert call(*RUN, "updates=4", "hydra.run.dir=run", cwd=tmp_path).returncode == 0
    refused = call("resume", "run", cwd=tmp_path)
    assert refused.returncode == 1
    assert "updates=N above 4" in refused.stderr
    assert call("resume", "run", "updates=6", cwd=tmp_path).returncode == 0
    assert call(*RUN, "hydra.run.dir=whole", cwd=tmp_path).returncode == 0
    assert tables(tmp_path / "run") == tables(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(max(1, KILLS // 6)))
def test_a_killed_sweep_runs_only_what_is_missing(kill: int, tmp_path: Path) -> None:
    line = ("sweep", *RUN, "updates=2", "lr=0.01,0.05", "seed=0,1")
    started = time.monotonic()
    assert call(*line, "hydra.sweep.dir=whole", cwd=tmp_path).returncode == 0
    seconds = time.monotonic() - started
    process = begin(*line, "hydra.sweep.dir=cut", cwd=tmp_path)
    time.sleep(random.Random(kill).uniform(0.5, 0.9) * seconds)
    process.kill()
    process.communicate()
    finished = {
        name: (tmp_path / "cut" / name / "run.json").read_bytes()
        for name in "0123"
        if (tmp_path / "cut" / name / "run.json").is_file()
        and read_record(tmp_path / "cut" / name).state == "finished"
    }
    again = call("resume", "cut", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    for name in "0123":
        assert tables(tmp_path / "cut" / name) == tables(tmp_path / "whole" / name)
    for name, before in finished.items():
        assert (tmp_path / "cut" / name / "run.json").read_bytes() == before
