"""The package as a wheel, away from its checkout: same recipes, same options, one's own too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentic_rl.searchpath import data_dir

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    quiet = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), str(ROOT)],
        check=True,
    )
    return folder


def _run(installed: Path, cwd: Path, *argv: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "agentic_rl", *argv],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_files_are_inside(installed: Path) -> None:
    for name in ("conf", "recipes"):
        ours = {file.relative_to(data_dir(name)) for file in data_dir(name).rglob("*.yaml")}
        folder = installed / "agentic_rl" / name
        assert {file.relative_to(folder) for file in folder.rglob("*.yaml")} == ours


def test_recipes_and_options_are_found(installed: Path, tmp_path: Path) -> None:
    shown = _run(installed, tmp_path, "list", "recipes").split()
    assert {file.stem for file in data_dir("recipes").glob("*.yaml")} <= set(shown)
    searched = _run(installed, tmp_path, "--info", "searchpath")
    assert str(installed / "agentic_rl" / "conf") in searched
    assert str(ROOT / "conf") not in searched


def test_it_trains_a_recipe_of_ones_own(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "conf" / "reward").mkdir(parents=True)
    (tmp_path / "recipes" / "mine.yaml").write_text(
        "# @package _global_\n"
        "defaults:\n  - /recipe/debug\n  - override /reward: mild\n"
        "updates: 0\n"
    )
    (tmp_path / "conf" / "reward" / "mild.yaml").write_text(
        "defaults: [success_minus_invalid, _self_]\npenalty: 0.01\n"
    )
    _run(installed, tmp_path, "+recipe=mine", "hydra.run.dir=outputs/x")
    assert "penalty: 0.01" in (tmp_path / "outputs/x/resolved.yaml").read_text()
