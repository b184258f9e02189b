"""One small run whose tables never change, on any Python; floats count to ten digits."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentic_rl.cli import dispatch
from agentic_rl.results.schemas import TABLES
from tests.processes import tables

GOLDEN = Path(__file__).parent / "golden" / "debug_run"
LINE = (
    "+recipe=debug",
    "updates=3",
    "games_per_update=2",
    "group_size=3",
    "games.valid_unseen=3",
    "evaluation.every=3",
    "hydra.run.dir=run",
)


def rounded(value: Any) -> Any:
    """Ten digits: processors differ in the last bits of an exponential."""
    return float(f"{value:.10g}") if isinstance(value, float) else value


def text(rows: list[dict[str, Any]]) -> str:
    lines = [json.dumps({key: rounded(value) for key, value in row.items()}) for row in rows]
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert dispatch(LINE) == 0
    finally:
        os.chdir(before)
    return folder / "run"


@pytest.mark.parametrize("table", sorted(TABLES))
def test_golden_table(table: str, run: Path) -> None:
    found = text(tables(run)[table])
    file = GOLDEN / f"{table}.ndjson"
    if os.environ.get("AGENTIC_RL_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(found, encoding="utf-8")
    assert found == file.read_text(encoding="utf-8")


def test_resolved_configuration_runs_again_to_equal_tables(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    again = ["--config-dir", str(run), "--config-name", "resolved", "hydra.run.dir=again"]
    assert dispatch(again) == 0
    assert tables(tmp_path / "again") == tables(run)
    saved = (run / "resolved.yaml").read_bytes()
    assert (tmp_path / "again" / "resolved.yaml").read_bytes() == saved
