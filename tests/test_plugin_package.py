"""A package of a third party, installed: its reward, protocol and recipe, with no edit of ours."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).with_name("plugin_package")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the installed package, as site-packages would."""
    folder = tmp_path_factory.mktemp("site")
    quiet = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *quiet, "--target", str(folder), str(PACKAGE)],
        check=True,
    )
    return folder


def _run(installed: Path, cwd: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentic_rl", *argv],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(installed), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_its_recipe_trains(installed: Path, tmp_path: Path) -> None:
    done = _run(installed, tmp_path, "+recipe=brief_debug", "hydra.run.dir=outputs/x")
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "outputs/x/run.json").read_text())
    assert (run["recipe"], run["status"]) == ("brief_debug", "finished")
    resolved = (tmp_path / "outputs/x/resolved.yaml").read_text()
    assert "name: brevity" in resolved
    assert "name: terse_tool_call" in resolved
    again = ["--config-dir", "outputs/x", "--config-name", "resolved", "hydra.run.dir=outputs/y"]
    assert _run(installed, tmp_path, *again).returncode == 0
    assert (tmp_path / "outputs/y/resolved.yaml").read_text() == resolved


def test_its_parts_are_named_like_ours(installed: Path, tmp_path: Path) -> None:
    shown = _run(installed, tmp_path, "reward=brevity", "reward.per_token=0.5", "--cfg", "job")
    assert "per_token: 0.5" in shown.stdout
    near = _run(installed, tmp_path, "reward=brevty")
    assert near.returncode == 1
    assert "Did you mean 'brevity'?" in near.stderr
    key = _run(installed, tmp_path, "reward=brevity", "reward.per_tokn=1")
    assert "Did you mean 'reward.per_token'?" in key.stderr


def test_its_parts_are_listed(installed: Path, tmp_path: Path) -> None:
    lines = _run(installed, tmp_path, "list").stdout.splitlines()
    shown = dict(line.strip().split(maxsplit=1) for line in lines)
    assert shown["brief_debug"] == "The debug recipe with this package's reward and protocol."
    assert shown["brevity"] == "Pays for success, charges for every sampled token."
    assert shown["terse_tool_call"] == "JSON tool calls without a system message."


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("agentic-rl sweep reward=brev", "reward=brevity"),
        ("agentic-rl eval protocol=ters", "protocol=terse_tool_call"),
        ("agentic-rl +recipe=brie", "+recipe=brief_debug"),
    ],
)
def test_its_parts_are_completed(line: str, shown: str, installed: Path, tmp_path: Path) -> None:
    done = _run(installed, tmp_path, "-sc", "query=bash", COMP_LINE=line)
    assert done.stdout.split() == [shown]


def test_a_name_of_ours_cannot_be_taken(installed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text(
        "[agentic_rl.reward]\nsuccess_minus_invalid = shop.brevity:Brevity\n"
    )
    both = f"{installed}{os.pathsep}{tmp_path}"
    done = _run(installed, tmp_path, "+recipe=debug", PYTHONPATH=both)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "two rewards are called 'success_minus_invalid'" in done.stderr


def test_a_broken_part_hurts_only_who_names_it(installed: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[agentic_rl.reward]\nbroken = no_such_module:X\n")
    (tmp_path / "conf" / "reward").mkdir(parents=True)
    (tmp_path / "conf" / "reward" / "broken.yaml").write_text("name: broken\n")
    both = f"{installed}{os.pathsep}{tmp_path}"
    fine = _run(installed, tmp_path, "+recipe=brief_debug", "updates=0", PYTHONPATH=both)
    assert fine.returncode == 0, fine.stderr
    done = _run(installed, tmp_path, "+recipe=debug", "reward=broken", PYTHONPATH=both)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "the plug-in reward 'broken'" in done.stderr
    assert "does not load" in done.stderr
