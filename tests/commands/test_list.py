"""`agentic-rl list`: one line for each thing that can be named."""

from pathlib import Path

import pytest

from agentic_rl.cli import dispatch
from agentic_rl.config import FAMILIES
from agentic_rl.searchpath import data_dir


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_everything_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for kind in ("recipes", *FAMILIES):
        folder = data_dir("recipes") if kind == "recipes" else data_dir("conf") / kind
        start = next(i for i, line in enumerate(lines) if line.split()[:1] == [kind])
        section = lines[start + 1 :]
        for file in folder.glob("*.yaml"):
            shown = [line for line in section if line.split()[:1] == [file.stem]]
            assert shown, f"{kind} {file.stem}"
            assert len(shown[0].split()) > 1, f"{kind} {file.stem} says nothing of itself"


def test_each_line_says_what_the_part_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["list"]) == 0
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("  "):
            about = line.split(maxsplit=1)[1]
            assert about.endswith("."), line
            assert not about.startswith("Source:"), line


def test_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["list", "reward"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "reward (reward=NAME)"
    assert all(line.startswith("  ") for line in lines[1:])


def test_the_callers_recipes_come_with_their_comment(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "recipes").mkdir()
    (here / "recipes" / "mine.yaml").write_text("# @package _global_\n# What mine shows.\n")
    assert dispatch(["list", "recipes"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["mine", "What mine shows."] in lines


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("# conf/reward/mine.yaml\nname: success_minus_invalid\n", "return = success * 1[won]"),
        ("# Source: a paper.\n# What it\n# is. More.\nname: mine\n", "What it is. More."),
        ("# Source: a paper.\nname: success_penalized_steps\n", "task reward = success on"),
        ("name: nobody\n# Of the field.\nx: 1\n", ""),
    ],
)
def test_an_option_without_a_sentence_shows_its_components(
    here: Path, capsys: pytest.CaptureFixture[str], text: str, about: str
) -> None:
    (here / "conf" / "reward").mkdir(parents=True)
    (here / "conf" / "reward" / "mine.yaml").write_text(text)
    assert dispatch(["list", "reward"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (shown,) = (line.strip() for line in lines if line.split()[0] == "mine")
    assert shown.removeprefix("mine").strip().startswith(about)
    assert about or shown == "mine"
