"""`agentic-rl data`: what it prints of generated and published games, and how a download fails."""

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentic_rl.cli import dispatch
from agentic_rl.commands import data
from agentic_rl.errors import GamesError
from agentic_rl.games.alfworld import PUBLISHED, ALFWorldGames
from agentic_rl.games.index import GAME_FILE, TRAJ_FILE
from agentic_rl.types import TASK_TYPES

GAME = {"pddl_domain": "", "grammar": "", "pddl_problem": "", "solvable": True}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTIC_RL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    return tmp_path / "cache"


def write_games(root: Path, counts: Mapping[str, int], excluded: int = 0) -> None:
    for split, count in counts.items():
        for number in range(count + excluded):
            trial = root / "json_2.1.1" / split / f"task-{number // 2}" / f"trial_{number}"
            trial.mkdir(parents=True)
            game = GAME | {"solvable": number < count, "walkthrough": ["look"]}
            (trial / GAME_FILE).write_text(json.dumps(game))
            task = {"task_type": TASK_TYPES[number % 6]}
            (trial / TRAJ_FILE).write_text(json.dumps(task))


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """What one command line prints: on standard output, or on an error its single line."""
    assert dispatch(["data", *words]) == status
    printed = capsys.readouterr()
    if status == 0:
        return printed.out
    assert printed.err.count("\n") == 1, printed.err
    return printed.err


def rows(text: str) -> dict[str, list[str]]:
    """Table rows by their first cell; cells lie two spaces apart at least."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return {first: rest for first, *rest in cells}


def test_stats_of_published_games(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_games(tmp_path, {"train": 12, "valid_seen": 6, "valid_train": 4}, excluded=2)
    text = said(capsys, "stats", "--root", str(tmp_path))
    table = rows(text)
    assert f"games=alfworld in {tmp_path}/json_2.1.1" in text
    assert table["train"] == ["valid_seen", "valid_train"]
    assert table[TASK_TYPES[0]] == ["2", "1", "1"]
    assert table["games kept"] == ["12", "6", "4"]
    assert table["task folders of these"] == ["6", "3", "2"]
    assert table["left out: not solvable"] == ["2", "2", "2"]
    games = ALFWorldGames(root=str(tmp_path))
    assert table["panel train"] == [games.load("train").panel_hash]
    assert "partial (train 12 of 3,553, valid_seen 6 of 140, valid_unseen 0 of 134)" in text
    assert re.search(r"^valid_unseen: no split 'valid_unseen' in .*valid_train$", text, re.M)


@pytest.mark.parametrize(
    "words",
    [
        ["games=builtin_tiny", "games.train=7", "games.valid_seen=6", "games.valid_unseen=6"],
        ["games=builtin_tiny", "train=7", "valid_seen=6", "valid_unseen=6"],
        ["--games", "builtin_tiny", "train=7", "valid_seen=6", "valid_unseen=6", "seed=0"],
        ["games=builtin", "difficulty=tiny", "train=7", "valid_seen=6", "valid_unseen=6"],
    ],
)
def test_stats_of_generated_games(
    words: list[str], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, "stats", *words)
    assert rows(text)["games kept"] == ["7", "6", "6"]
    assert f"games=builtin in {cache}/games/tiny-seed0" in text
    assert "published" not in text


@pytest.mark.slow
def test_the_whole_published_set_is_called_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "it's, all"
    write_games(root, PUBLISHED)
    assert "complete (train 3,553 of 3,553" in said(capsys, "stats", "--root", str(root))
    assert "already" in said(capsys, "download", "--to", str(root))
    started = time.perf_counter()
    ALFWorldGames(root=str(root)).load("train")
    assert time.perf_counter() - started < 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stat"], r"does not know 'stat'\. Did you mean 'stats'\?"),
        ([], r"required: stats\|download\. See `agentic-rl data --help`"),
        (["stats", "--rooot", "x"], r"unknown flag '--rooot'\. Did you mean '--root'\?"),
        (["stats", "--root"], r"--root: expected one argument"),
    ],
)
def test_misuse_is_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(expected, said(capsys, *words, status=2))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["stats"], r"no ALFWorld games: .*`agentic-rl data download`.*ALFWORLD_DATA.*builtin"),
        (["stats", "games=alfwrold"], r"Did you mean 'alfworld'\?"),
        (["stats", "games=builtin", "dificulty=hard"], r"Did you mean 'games.difficulty'\?"),
        (["stats", "games=builtin", "difficulty=hrad"], r"Did you mean 'hard'\?"),
    ],
)
def test_a_slip_is_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(expected, said(capsys, *words, status=1))


def test_the_download_goes_where_it_is_told(tmp_path: Path) -> None:
    script, *rest = data.download_command(tmp_path, force=False)
    assert Path(script).name == "alfworld-download" and Path(script).is_file()
    assert rest == ["--data-dir", str(tmp_path)]
    assert data.download_command(tmp_path, force=True)[3:] == ["-f", "-ff"]


def test_a_download_without_network_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert dispatch(["data", "download", "--to", str(tmp_path / "to")]) == 1
    printed = capfd.readouterr()
    assert printed.out == f"Downloading the published games into {tmp_path}/to.\n"
    assert re.fullmatch(
        r"alfworld-download failed: .*ProxyError.*; type the command again .*games=builtin\n",
        printed.err,
    )


def test_progress_is_shown_and_a_traceback_is_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import os, sys; sys.stderr.write('\\rloading 10%'); sys.stderr.flush();"
        "sys.stderr.write('\\rloading 20%\\n'); sys.stderr.flush();"
        "assert os.environ['ALFWORLD_DATA'] == sys.argv[1];"
        "assert os.environ['TMPDIR'].startswith(sys.argv[1]);"
        "raise OSError('no space left') if len(sys.argv) > 2 else SystemExit"
    )
    with pytest.raises(GamesError, match="alfworld-download failed: OSError: no space left;"):
        data._run([sys.executable, "-c", code, str(tmp_path), "fail"], tmp_path)
    assert capfd.readouterr().err == "\rloading 10%\rloading 20%\n"
    assert os.listdir(tmp_path) == [".partial"]
    data._run([sys.executable, "-c", code, str(tmp_path)], tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert dispatch(["data", "download", "--to", str(tmp_path / "file")]) == 1
    assert re.search(r"cannot write to .*/file: .*; type --to PATH\n$", capsys.readouterr().err)
