"""Every recipe composes, and trains two updates on toy games with the embedded policy."""

from pathlib import Path

import pytest

from agentic_rl.cli import dispatch
from agentic_rl.config import FAMILIES
from agentic_rl.results import read_record
from agentic_rl.searchpath import data_dir
from tests.processes import tables

RECIPES = sorted(file.stem for file in data_dir("recipes").glob("*.yaml"))
SMALL = (
    "games=toy",
    "env=toy",
    "backend=linear",
    "tracker=none",
    "backend.warm_start=0",
    "updates=2",
    "games_per_update=2",
    "group_size=2",
    "games.valid_unseen=2",
    "evaluation.splits=[valid_unseen]",
    "rollout.max_steps=6",
)


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_trains(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status = dispatch([f"+recipe={recipe}", *SMALL, "hydra.run.dir=run"])
    said = capsys.readouterr().err
    assert status == 0, said
    assert "warning" not in said
    run = tmp_path / "run"
    assert read_record(run).recipe == recipe
    rows = tables(run)
    assert [row["update"] for row in rows["updates"]] == [1, 2]
    assert {row["trajectories"] for row in rows["updates"]} == {4}
    assert len(rows["episodes"]) == 2 * 4 + 2 * 2


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_says_what_it_shows(recipe: str) -> None:
    lines = (data_dir("recipes") / f"{recipe}.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1].startswith("# ") and lines[1].endswith(".")


def test_every_family_has_a_folder_of_options() -> None:
    for family in FAMILIES:
        assert list((data_dir("conf") / family).glob("*.yaml")), family
