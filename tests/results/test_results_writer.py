"""The writer: what it refuses, what it keeps, and how a run goes on."""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rl.errors import RunFolderError
from agentic_rl.results import TABLES, TIMES, RunFolder, new_record, read_record
from agentic_rl.results.checkpoints import read_checkpoints
from agentic_rl.results.record import RunRecord, new_run_id
from agentic_rl.results.rows import complete_row
from agentic_rl.results.schemas import IDENTITY
from agentic_rl.training import Checkpoint
from tests.run_folders import new_run, row, step_row, update_row

NO_PROCESS = 2**22 + 1
"""Above the largest pid there can be."""


def test_every_table_declares_each_column_once_and_documents_it() -> None:
    identity = {column.name for column in IDENTITY}
    for table in TABLES.values():
        assert len(set(table.names)) == len(table.names)
        assert set(table.keys) <= set(table.names)
        assert table.names[0] == "run_id"
        assert not identity & set(table.names)
        assert all(column.doc for column in table.columns)
    clocks = {name for table in TABLES.values() for name in table.names if "seconds" in name}
    assert clocks == TIMES


def test_a_thousand_run_ids_made_at_once_are_unique() -> None:
    with ThreadPoolExecutor(32) as pool:
        made = list(pool.map(lambda _: new_run_id(), range(1000)))
    assert len(set(made)) == 1000


def test_of_many_that_create_one_folder_one_wins(tmp_path: Path) -> None:
    def create(_: int) -> str | None:
        try:
            return RunFolder.create(tmp_path / "run", new_record("train")).run_id
        except RunFolderError:
            return None

    with ThreadPoolExecutor(16) as pool:
        made = [run_id for run_id in pool.map(create, range(16)) if run_id]
    assert made == [read_record(tmp_path / "run").run_id]
    assert [entry.name for entry in (tmp_path / "run").iterdir()] == ["run.json"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_of_many_that_take_a_run_over_one_wins(tmp_path: Path, overwrite: bool) -> None:
    for _ in range(10):
        folder = tmp_path / new_run_id()
        new_run(folder).finish("stopped")
        seen = read_record(folder)

        def take(_: int, folder: Path = folder, seen: RunRecord = seen) -> str | None:
            try:
                if overwrite:
                    return RunFolder.create(folder, new_record("train"), overwrite=True).run_id
                return RunFolder.reopen(folder, seen).run_id
            except RunFolderError:
                return None

        with ThreadPoolExecutor(8) as pool:
            taken = [run_id for run_id in pool.map(take, range(8)) if run_id]
        assert taken == [read_record(folder).run_id]


def test_a_run_that_went_on_meanwhile_is_not_reopened(tmp_path: Path) -> None:
    new_run(tmp_path).finish("stopped")
    seen = read_record(tmp_path)
    RunFolder.reopen(tmp_path, seen).finish("finished")
    with pytest.raises(RunFolderError, match="has just gone on"):
        RunFolder.reopen(tmp_path, seen)


def test_a_folder_with_a_run_is_refused_and_says_what_to_type(tmp_path: Path) -> None:
    new_run(tmp_path).finish("finished")
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    with pytest.raises(RunFolderError, match="overwrite=true"):
        RunFolder.create(tmp_path, new_record("train"))
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before


def test_a_folder_with_foreign_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".gitkeep").touch()
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunFolderError, match=r"thesis\.tex"):
        RunFolder.create(tmp_path, new_record("train"))
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(RunFolderError, match="checkpoints"):
        RunFolder.create(tmp_path, new_record("train"), overwrite=True)
    assert not (tmp_path / "run.json").exists()


def test_overwrite_removes_what_a_run_writes_and_nothing_else(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.append("steps", [step_row(1, 0)])
    run.append_trajectories([{"update": 1}])
    run.add_checkpoint(Checkpoint("a", str(run.checkpoint_folder("a")), ""), 1)
    run.finish("finished")
    (tmp_path / "notes.md").write_text("mine")
    RunFolder.create(tmp_path, new_record("train"), overwrite=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["notes.md", "run.json"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_a_killed_writer_half_wrote_goes(tmp_path: Path, overwrite: bool) -> None:
    run = new_run(tmp_path)
    for name in ("steps.parquet", "trajectories.jsonl", "resolved.yaml", "run.json.20260101"):
        (tmp_path / f".{name}.77.tmp").write_text("half")
    (tmp_path / ".notes.tmp").write_text("mine")
    run.finish("stopped")
    if overwrite:
        RunFolder.create(tmp_path, new_record("train"), overwrite=True)
    else:
        RunFolder.reopen(tmp_path)
    hidden = [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")]
    assert hidden == [".notes.tmp"]


def test_a_run_being_written_is_neither_overwritten_nor_reopened(tmp_path: Path) -> None:
    new_run(tmp_path)
    with pytest.raises(RunFolderError, match="is being written by process"):
        RunFolder.create(tmp_path, new_record("train"), overwrite=True)
    with pytest.raises(RunFolderError, match="is being written by process"):
        RunFolder.reopen(tmp_path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"acton": "look"}, "no column 'acton'. Did you mean 'action'"),
        ({"step": None}, "steps.step needs a value"),
        ({"step": 1.5}, "is no int"),
        ({"step": True}, "is no int"),
        ({"reward": "high"}, "is no float"),
        ({"malformed": 0}, "is no bool"),
        ({"action": 3}, "is no text"),
    ],
)
def test_a_row_unlike_its_table_is_a_bug(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        complete_row(TABLES["steps"], {"run_id": "r", **step_row(1, 0), **values})


def test_rows_are_complete_in_order_and_without_nan(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    values = {"reward": float("nan"), "advantage": np.float32("inf"), "segment": np.int64(2)}
    run.append("steps", [step_row(1, 0, malformed=np.bool_(False), action="\ud800\n", **values)])
    (line,) = (tmp_path / "steps.ndjson").read_bytes().splitlines()
    read = json.loads(line)
    assert tuple(read) == TABLES["steps"].names
    assert (read["run_id"], read["reward"], read["advantage"]) == (run.run_id, None, None)
    assert (read["segment"], read["malformed"], read["action"]) == (2, False, "?\n")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_come_back_to_the_bit(values: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = new_run(Path(folder) / "run")
        run.append("steps", [step_row(1, t, reward=value) for t, value in enumerate(values)])
        run.finish("finished")
        read = pl.read_parquet(run.path / "steps.parquet", glob=False)["reward"].to_list()
    assert [value.hex() for value in read] == [value.hex() for value in values]


def _one_update(run: RunFolder, update: int) -> None:
    run.append("steps", [step_row(update, t, reward=update / 7) for t in range(3)])
    run.append("updates", [update_row(update, loss=None if update == 1 else 0.1)])
    run.append_trajectories([{"update": update, "messages": []}])
    run.add_checkpoint(Checkpoint(f"update-{update}", "trio://x", "trio://y"), update)


def _three_updates(run: RunFolder, first: int) -> None:
    for update in range(first, 4):
        _one_update(run, update)


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_gone_on_with_equals_one_never_stopped(tmp_path: Path, ended: bool) -> None:
    whole = new_run(tmp_path / "whole", run_id="same")
    _three_updates(whole, 1)
    whole.finish("finished")
    cut = new_run(tmp_path / "cut", run_id="same")
    _three_updates(cut, 1)
    if ended:
        cut.finish("stopped", "Ctrl-C")
    _die(cut)
    again = RunFolder.reopen(cut.path)
    again.cut_after(1)
    assert [entry.update for entry in read_checkpoints(cut.path)] == [1]
    _three_updates(again, 2)
    again.finish("finished")
    for name in TABLES:
        one, other = (tmp_path / where / f"{name}.parquet" for where in ("whole", "cut"))
        assert one.read_bytes() == other.read_bytes()
    for name in ("trajectories.jsonl", "checkpoints.jsonl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    assert read_record(cut.path).resumed == 1


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_kill_at_any_byte_of_any_file_is_made_good(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = new_run(Path(folder) / "whole", run_id="same")
        _three_updates(whole, 1)
        whole.finish("finished")
        cut = new_run(Path(folder) / "cut", run_id="same")
        _one_update(cut, 1)
        files = [path for path in sorted(cut.path.iterdir()) if "json" in path.suffix]
        safe = {path: path.stat().st_size for path in files if path.name != "run.json"}
        for update in (2, 3):
            _one_update(cut, update)
        for path, size in safe.items():
            content = path.read_bytes()
            path.write_bytes(content[: data.draw(st.integers(size, len(content)))])
        _die(cut)
        again = RunFolder.reopen(cut.path)
        again.cut_after(1)
        _three_updates(again, 2)
        again.finish("finished")
        for path in sorted(whole.path.iterdir()):
            if path.name not in ("run.json", "resolved.yaml"):
                assert (cut.path / path.name).read_bytes() == path.read_bytes()


def test_a_kill_while_the_tables_become_parquet_is_made_good(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    _three_updates(run, 1)
    lines = (tmp_path / "steps.ndjson").read_bytes()
    run.finish("finished")
    parquet = (tmp_path / "steps.parquet").read_bytes()
    (tmp_path / "steps.ndjson").write_bytes(lines)
    (tmp_path / ".steps.parquet.77.tmp").write_bytes(parquet[:50])
    again = RunFolder.reopen(tmp_path)
    again.cut_after(3)
    assert not (tmp_path / "steps.parquet").exists()
    again.finish("finished")
    assert (tmp_path / "steps.parquet").read_bytes() == parquet


def _die(run: RunFolder) -> None:
    """What kill -9 leaves: the record still says running, of a process that is no more."""
    path = run.path / "run.json"
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps(content | {"pid": NO_PROCESS}))


def test_a_writer_that_died_reads_as_interrupted(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    assert read_record(tmp_path).state == "running"
    _die(run)
    assert read_record(tmp_path).state == "interrupted"
    # The same pid, begun at another time, is another process.
    assert replace(run.record, process="1").state == "interrupted"
    assert replace(run.record, host="elsewhere", pid=NO_PROCESS).state == "running"


def test_a_torn_line_goes_before_the_next_row(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.append("steps", [step_row(1, 0)])
    whole = (tmp_path / "steps.ndjson").read_bytes()
    (tmp_path / "steps.ndjson").write_bytes(whole + b'{"run_id":"torn')
    _die(run)
    again = RunFolder.reopen(tmp_path)
    again.append("steps", [step_row(1, 0)])
    assert (tmp_path / "steps.ndjson").read_bytes() == whole * 2


FULL_DISK = """
import resource, sys
from pathlib import Path
from agentic_rl.results.lines import LineFile

path = Path(sys.argv[1])
file = LineFile(path)
file.append(["x" * 10])
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    file.append(["y" * 50])
except OSError:
    print(path.read_text(), end="")
"""


def test_a_full_disk_leaves_no_half_row(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "rows")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "x" * 10 + "\n"


def test_no_secret_is_written(tmp_path: Path) -> None:
    overrides = ["backend.api_key=sk-1", "+tracker.token=sk-2", "rollout.max_turn_tokens=9"]
    run = RunFolder.create(tmp_path, new_record("train", overrides=overrides))
    run.write_config({"backend": {"api_key": "sk-1", "name": "x"}, "tracker": {"token": "sk-2"}})
    written = "".join(entry.read_text() for entry in tmp_path.iterdir())
    assert "sk-" not in written
    assert run.record.overrides[2] == overrides[2]


def test_the_saved_configuration_can_be_run_again(tmp_path: Path) -> None:
    run = new_run(tmp_path, {"lr": 1e-6, "checkpoint": None, "evaluation": {"splits": ["a"]}})
    saved = yaml.safe_load((run.path / "resolved.yaml").read_text())
    assert saved.pop("defaults") == ["experiment_schema", "run_folder", "_self_"]
    assert saved == {"seed": 0, "lr": 1e-6, "checkpoint": None, "evaluation": {"splits": ["a"]}}


def test_addresses_inside_the_run_folder_survive_a_move(tmp_path: Path) -> None:
    run = new_run(tmp_path / "here")
    folder = run.checkpoint_folder("update-1")
    run.add_checkpoint(Checkpoint("update-1", str(folder), "trio://far"), 1, {"loss": np.nan})
    (tmp_path / "here").rename(tmp_path / "there")
    (saved,) = read_checkpoints(tmp_path / "there")
    assert saved.checkpoint.state == str(tmp_path / "there/checkpoints/update-1")
    assert (saved.checkpoint.sampler, saved.metrics) == ("trio://far", {"loss": None})


def test_every_table_is_there_at_the_end_even_without_a_row(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.append("evaluations", [row("evaluations", split="s", task_type="all")])
    run.finish("failed", "the backend is gone")
    assert not list(tmp_path.glob("*.ndjson"))
    for name, table in TABLES.items():
        frame = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert tuple(frame.columns) == table.names
        assert len(frame) == (name == "evaluations")
    record = read_record(tmp_path)
    assert (record.status, record.error) == ("failed", "the backend is gone")
