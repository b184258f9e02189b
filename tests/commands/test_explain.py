"""`agentic-rl explain`: what a person reads, and that its numbers are those of the sources."""

import re
from pathlib import Path

import pytest

from agentic_rl.cli import dispatch


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def run(*words: str, status: int = 0) -> str:
        assert dispatch(["explain", *words]) == status
        printed = capsys.readouterr()
        return printed.err if status else printed.out

    return run


def column(text: str, step: str) -> list[str]:
    """The numbers that the worked example has for a step."""
    line = next(line for line in text.splitlines() if line.strip().startswith(f"{step} "))
    return re.findall(r"-?\d+\.\d{4}", line)


def test_an_estimator_shows_formula_conventions_sources_and_example(explain) -> None:
    text = explain("advantage=gigpo_released")
    assert "advantage=gigpo_released  (a preset of step_level)" in text
    assert "Source: verl-agent" in text
    assert "A_t = episode_weight * A^E_t + step_weight * A^S_t" in text
    normalize = next(line for line in text.splitlines() if line.strip().startswith("normalize"))
    assert "mean_std" in normalize and "gigpo_released: The ALFWorld script" in normalize
    assert "divides by the standard deviation" in normalize
    assert [column(text, step) for step in ("A1", "B1", "D3")] == [
        ["2.1924"],
        ["-1.4924"],
        ["-1.7522"],
    ]


def test_lists_become_columns_of_one_table(explain) -> None:
    text = explain("advantage=step_level,hgpo_released", "advantage.gamma=0.95")
    assert column(text, "A1") == ["11.7590", "1.4142"]
    assert text.count("convention ") == 1
    assert "0.95 (command line)" in text and "next (hierarchical)" in text


def test_the_reward_that_was_named_is_the_one_shown(explain) -> None:
    words = ("advantage=group_mean", "reward=success_minus_invalid", "reward.penalty=0.2")
    text = explain(*words).partition("advantage=group_mean")[2]
    # Returns 1, -0.2, 1 and -0.2: D's refused action counts, its cut reply does not.
    assert column(text, "A0") == ["0.6000"]
    assert column(text, "D3") == ["-0.6000"]


def test_a_loss_shows_where_it_clips(explain) -> None:
    text = explain("loss=ppo,cispo,importance_sampling")
    line = next(line for line in text.splitlines() if re.match(r"\s+5\s+\+1", line))
    assert line.count("yes") == 2
    assert "-5.0000" in line


def test_a_protocol_shows_a_turn_and_how_it_reads(explain) -> None:
    text = explain("protocol=tool_call,think_action")
    assert "[system]" in text and "[tool]" in text
    assert re.search(r"as think_action writes it\s+none: .*go to shelf 1", text)


def test_a_recipe_shows_all_its_choices_and_what_it_set(explain) -> None:
    text = explain("+recipe=alfworld_gigpo")
    for chosen in ("protocol=think_action", "advantage=gigpo_released", "loss=ppo"):
        assert chosen in text
    assert re.search(r"counts\s+\[malformed, cut\]\s+recipe", text)


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [
        (["advantage=gigpo_relased"], "Did you mean 'gigpo_released'?", 1),
        (["advantage=step_level", "advantage.epss=1"], "Did you mean 'advantage.eps'?", 1),
        (["advantage=step_level", "advantage.penalty=afer"], "Did you mean 'after'?", 1),
        (["advantage=["], "cannot read 'advantage=['", 1),
        ([], "agentic-rl explain advantage=gigpo_released", 2),
        (["backend=linear"], "nothing on backend: it knows protocol, reward, advantage, loss", 2),
        (["env=toy"], "or `agentic-rl explain +recipe=debug`", 2),
        (["updates=3"], "explain knows protocol, reward, advantage, loss and recipes", 2),
        (["recipe=alfworld_rloo"], "type `agentic-rl explain +recipe=alfworld_rloo`", 2),
    ],
)
def test_slips_are_one_line(explain, words: list[str], message: str, status: int) -> None:
    text = explain(*words, status=status)
    assert message in text
    assert text.count("\n") == 1


def test_nothing_is_written(explain, tmp_path: Path) -> None:
    explain("advantage=rloo")
    assert list(tmp_path.iterdir()) == []
