"""A disk without room, a folder that cannot be, a terminal without the letters: one line each."""

import os
import resource
import subprocess
from pathlib import Path

import pytest

from agentic_rl.cli import dispatch
from agentic_rl.results import read_record
from tests.processes import COMMAND, call, environment, tables

RUN = (
    "+recipe=debug",
    "updates=3",
    "games_per_update=2",
    "group_size=2",
    "games.valid_unseen=2",
    "save.every=1",
)


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [1, 4, 12, 60])
def test_a_run_without_room_says_so_and_goes_on_later(tmp_path: Path, kilobytes: int) -> None:
    """No file may grow past the limit, as on a disk that is full."""
    assert call(*RUN, "hydra.run.dir=whole", cwd=tmp_path).returncode == 0
    limit = kilobytes * 1024
    done = subprocess.run(
        [*COMMAND, *RUN, "hydra.run.dir=run"],
        cwd=tmp_path,
        env=environment(),
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "cannot be written: " in done.stderr.splitlines()[-1]
    run = tmp_path / "run"
    if (run / "resolved.yaml").is_file():
        assert "agentic-rl resume run" in done.stderr
        assert read_record(run).state in ("failed", "interrupted")
        assert call("resume", "run", cwd=tmp_path).returncode == 0
        assert tables(run) == tables(tmp_path / "whole")


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_run_folder_that_cannot_be_is_one_line(
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert dispatch([*RUN, f"hydra.run.dir={place}"]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("file")
    assert "cannot be a run folder" in line


@pytest.mark.slow
def test_a_terminal_without_the_letters_still_shows_the_table(tmp_path: Path) -> None:
    assert call(*RUN, "hydra.run.dir=run", cwd=tmp_path).returncode == 0
    done = subprocess.run(
        [*COMMAND, "compare", "run"],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"debug" in done.stdout
