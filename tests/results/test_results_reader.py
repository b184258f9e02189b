"""The reader: whole rows whatever was killed, foreign or broken; one schema for all."""

import json
import logging
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rl.errors import RunFolderError
from agentic_rl.results import TABLES, runs, scan
from agentic_rl.results.reader import scan_schema
from agentic_rl.results.reader import settings as run_settings
from tests.run_folders import new_run, row, step_row, update_row


def test_a_kill_at_any_byte_leaves_the_whole_rows(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.append("steps", [step_row(1, t, action=text) for t, text in enumerate(("a", "été", "\n"))])
    path = tmp_path / "steps.ndjson"
    content = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(content) if byte == ord("\n")]
    expected = scan(tmp_path, "steps").collect()
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        whole = sum(end <= size for end in ends)
        assert scan(tmp_path, "steps").collect().equals(expected.head(whole))


@settings(max_examples=100, deadline=None)
@given(damage=st.binary(max_size=60), at=st.floats(0, 1))
def test_no_bytes_in_a_table_break_the_reader(damage: bytes, at: float) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        run = new_run(Path(folder) / "run")
        run.append("steps", [step_row(1, t) for t in range(3)])
        path = run.path / "steps.ndjson"
        content = path.read_bytes()
        cut = int(at * len(content))
        path.write_bytes(content[:cut] + damage + content[cut:])
        (run.path / "updates.parquet").write_bytes(damage)
        assert scan(folder, "steps").collect_schema() == scan_schema("steps")
        scan(folder, "steps").collect()
        assert scan(folder, "updates").collect().is_empty()


def test_a_running_and_a_finished_run_read_alike(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run = new_run(tmp_path / name, run_id=name)
        run.append("updates", [update_row(1, loss=0.25, seconds_other=1)])
    run.finish("finished")
    frame = scan(tmp_path, "updates").collect()
    assert frame["run_id"].to_list() == ["a", "b"]
    assert frame["status"].to_list() == ["running", "finished"]
    assert frame["folder"].to_list() == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert frame.schema == scan_schema("updates")


@pytest.mark.parametrize("table", sorted(TABLES))
def test_no_run_and_no_row_give_the_declared_schema(tmp_path: Path, table: str) -> None:
    assert scan(tmp_path, table).collect().schema == scan_schema(table)
    new_run(tmp_path / "a")
    new_run(tmp_path / "b").finish("finished")
    assert scan(tmp_path, table).collect().schema == scan_schema(table)


def test_tables_of_other_versions_fit(tmp_path: Path) -> None:
    old = new_run(tmp_path / "old")
    old.append("updates", [update_row(1)])
    lines = old.path / "updates.ndjson"
    content = json.loads(lines.read_text())
    del content["segments_extra"], content["loss"]
    lines.write_text(json.dumps(content | {"of_the_future": [1]}) + "\n")
    other = new_run(tmp_path / "other")
    other.append("updates", [update_row(1, loss=1.0)])
    other.finish("finished")
    parquet = other.path / "updates.parquet"
    frame = pl.read_parquet(parquet).drop("segments_extra").with_columns(pl.col("loss").cast(int))
    frame.with_columns(of_the_future=pl.lit("x")).write_parquet(parquet)
    read = scan(tmp_path, "updates").collect()
    assert read.schema == scan_schema("updates")
    assert read["segments_extra"].to_list() == [None, None]
    assert read["loss"].to_list() == [None, 1.0]


def test_foreign_and_broken_files_are_named_and_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = new_run(tmp_path / "good")
    good.append("updates", [update_row(1)])
    for name in ("cut", "foreign", "lines", "types"):
        run = new_run(tmp_path / name)
        run.append("updates", [update_row(1)])
        if name != "lines":
            run.finish("finished")
    cut = tmp_path / "cut/updates.parquet"
    cut.write_bytes(cut.read_bytes()[:-9])
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "foreign/updates.parquet")
    (tmp_path / "lines/updates.ndjson").write_text('{"event": 1}\n')
    typed = pl.read_parquet(tmp_path / "types/updates.parquet")
    typed.with_columns(loss=pl.lit("high")).write_parquet(tmp_path / "types/updates.parquet")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/run.json").write_text("{")
    (tmp_path / "run.json").write_text('{"tool": "another"}')
    with caplog.at_level(logging.WARNING):
        frame = scan(tmp_path, "updates").collect()
    assert frame["run_id"].to_list() == [good.run_id]
    said = [entry.getMessage() for entry in caplog.records]
    for name in ("cut", "foreign", "lines", "types", "broken/run.json", "run.json"):
        assert any(str(tmp_path / name) in line for line in said), name
    assert all("\n" not in line for line in said)


def test_names_with_brackets_are_taken_to_the_letter(tmp_path: Path) -> None:
    run = new_run(tmp_path / "lr=[0.1]*")
    run.append("updates", [update_row(1)])
    assert len(scan(run.path, "updates").collect()) == 1
    run.finish("finished")
    assert len(scan(tmp_path, "updates").collect()) == 1


def test_while_both_are_there_the_lines_count(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.append("updates", [update_row(1)])
    lines = (tmp_path / "updates.ndjson").read_bytes()
    run.finish("finished")
    (tmp_path / "updates.ndjson").write_bytes(lines * 2)
    assert len(scan(tmp_path, "updates").collect()) == 2


def test_runs_come_once_in_natural_order(tmp_path: Path) -> None:
    for name in ("10", "9", "1"):
        new_run(tmp_path / name)
    found = runs([tmp_path, tmp_path / "9"])
    assert [run.folder.name for run in found] == ["1", "9", "10"]
    assert scan(tmp_path, "runs").collect()["recipe"].to_list() == ["debug"] * 3


def test_a_run_inside_a_run_is_no_run(tmp_path: Path) -> None:
    new_run(tmp_path / "a")
    new_run(tmp_path / "a/checkpoints/b")
    new_run(tmp_path / ".hidden/c")
    assert [run.folder.name for run in runs(tmp_path)] == ["a"]


def test_a_missing_folder_and_table_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no folder"):
        runs(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match="Did you mean 'episodes'"):
        scan(tmp_path, "episode")


def test_settings_are_flat(tmp_path: Path) -> None:
    run = new_run(tmp_path, {"optim": {"eps": 1e-8}, "games": {}, "splits": ["a"]}, seed=3)
    assert run_settings(run.path) == {"seed": 3, "optim.eps": 1e-8, "games": {}, "splits": ["a"]}


def test_a_thousand_rows_of_each_table_read_back(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for table in TABLES:
        run.append(table, [row(table, update=number) for number in range(1000)])
    for table in TABLES:
        assert scan(tmp_path, table).collect()["update"].to_list() == list(range(1000))
