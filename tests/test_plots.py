"""Pictures of runs: what is drawn is what the tables hold."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentic_rl.commands.plot import main
from agentic_rl.errors import AgenticRLError
from agentic_rl.plots import MOST_RUNS, draw, load_curves
from tests.run_folders import evaluate, new_run, update_row

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'agentic-rl[plot]'")


def _runs(root: Path) -> None:
    for seed in (0, 1):
        run = new_run(root / str(seed), {"lr": 0.1}, seed=seed)
        for update in (0, 2, 4):
            evaluate(run, update, [number < 3 + update + seed for number in range(10)])
        for update in (1, 2, 3, 4):
            reward = None if update == 3 else update / 10 + seed
            run.append("updates", [update_row(update, reward_mean=reward)])


def test_the_curves_are_the_tables_numbers(tmp_path: Path) -> None:
    _runs(tmp_path)
    figure = draw(load_curves([tmp_path]))
    success, bars, returns = figure.axes
    assert [list(line.get_xdata()) for line in success.lines] == [[0, 2, 4]] * 2
    assert list(success.lines[1].get_ydata()) == pytest.approx([40, 60, 80])
    assert list(returns.lines[0].get_xdata()) == [1, 2, 4]
    assert list(returns.lines[1].get_ydata()) == pytest.approx([1.1, 1.2, 1.4])
    assert [bar.get_height() for bar in bars.patches] == pytest.approx([70, 80])
    assert "valid_unseen" in success.get_title()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["debug seed 0", "debug seed 1"]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture_is_written(
    tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _runs(tmp_path)
    out = tmp_path / f"curve.{ending}"
    assert main([str(tmp_path), "--out", str(out)]) == 0
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert out.read_bytes().startswith(start)
    assert capsys.readouterr().out == f"{out}\n"


def test_runs_without_any_row_have_their_picture(tmp_path: Path) -> None:
    new_run(tmp_path / "empty")
    evaluate(new_run(tmp_path / "one"), 0, [True, False])
    assert main([str(tmp_path / "empty"), "--out", str(tmp_path / "a.png")]) == 0
    assert main([str(tmp_path), "--out", str(tmp_path / "b.png")]) == 0


def test_slips_are_one_line(tmp_path: Path) -> None:
    _runs(tmp_path)
    for out, message in (("curve.jpq", r"may end in .*\.png"), ("no/curve.png", "cannot be")):
        with pytest.raises(AgenticRLError, match=message):
            main([str(tmp_path), "--out", str(tmp_path / out)])
    for number in range(MOST_RUNS):
        new_run(tmp_path / f"more/{number}")
    with pytest.raises(AgenticRLError, match="too many for a picture"):
        main([str(tmp_path)])


WITHOUT = """
import sys

sys.modules["matplotlib"] = None
from agentic_rl.cli import dispatch

sys.exit(dispatch(["plot", sys.argv[1]]))
"""


def test_without_matplotlib_it_says_what_to_type(tmp_path: Path) -> None:
    new_run(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "pictures need matplotlib: pip install 'agentic-rl[plot]'\n"
