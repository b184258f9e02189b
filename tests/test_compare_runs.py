"""Comparing runs: what differs, which evaluation is shown, pairing game by game."""

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agentic_rl.commands._tables import Cells, fitted, narrowed, shortest_tails, text
from agentic_rl.commands.compare import main, run_cells
from agentic_rl.compare import Choice, by_settings, compare, differences
from agentic_rl.errors import AgenticRLError
from agentic_rl.pairs import pair
from agentic_rl.results.statistics import mcnemar
from tests.run_folders import evaluate, new_run, row, update_row

GOLDEN = Path(__file__).parent / "golden"


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _wins(count: int, n: int = 20) -> list[bool]:
    return [number < count for number in range(n)]


def _sweep(root: Path) -> None:
    """Two learning rates, two seeds each; one still running, one failed."""
    sizes = itertools.product((0.01, 0.05), (0, 1))
    for number, (lr, seed) in enumerate(sizes):
        config = {"lr": lr, "reward": {"name": "success_minus_invalid", "penalty": -0.1}}
        run = new_run(root / f"sweeps/{number}", config, run_id=f"run-{number}", seed=seed)
        if number == 3:
            run.finish("failed", "the backend is gone")
            continue
        evaluate(run, 0, _wins(4))
        for update in (1, 2):
            run.append("updates", [update_row(update, success=update / 4, cost=0.5 * update)])
        evaluate(run, 2, _wins(8 + 3 * number))
        if number != 2:
            run.finish("finished")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("compare.txt", ["sweeps"]),
        ("compare_group.txt", ["sweeps", "--group", "--statistic", "best"]),
        ("compare.md", ["sweeps", "--format", "markdown", "--statistic", "window"]),
        ("compare.csv", ["sweeps", "--format", "csv"]),
        ("compare_pair.txt", ["sweeps/0", "sweeps/1", "sweeps/2", "--pair"]),
    ],
)
def test_the_tables_are_those_kept(tmp_path: Path, name: str, words: list[str]) -> None:
    _sweep(tmp_path)
    with inside(tmp_path):
        assert main([*words, "--out", "table"]) == 0
    assert (tmp_path / "table").read_bytes() == (GOLDEN / name).read_bytes()


def test_parquet_holds_the_same_numbers(tmp_path: Path) -> None:
    _sweep(tmp_path)
    main([str(tmp_path), "--format", "parquet", "--out", str(tmp_path / "table.parquet")])
    expected = compare([tmp_path], Choice()).frame
    assert pl.read_parquet(tmp_path / "table.parquet").equals(expected)


def test_a_terminal_is_told_once_what_all_rows_share() -> None:
    head = ("run", "recipe", "seed", "success")
    rows = (("outputs/a/1", "debug", "0", "1 %"), ("outputs/a/2", "debug", "1", "2 %"))
    fewer = narrowed(Cells(head, rows, frozenset({"seed"}), ["a note"]))
    assert fewer.head == ["run", "seed", "success"]
    assert fewer.rows == [("1", "0", "1 %"), ("2", "1", "2 %")]
    assert fewer.notes == ["runs in outputs/a", "the same in all: recipe debug", "a note"]
    single = Cells(head, rows[:1], frozenset(), [])
    assert narrowed(single) is single


def _mixed(root: Path) -> None:
    """Runs of two recipes and of both commands, with long names and many unlike settings."""
    config = {"lr": 0.1, "evaluation": {"temperature": 1.0, "splits": ["valid_seen"]}, "updates": 4}
    kinds: list[tuple[str, str, str, dict[str, Any]]] = [
        ("deep/down/in/a/folder-of-runs/one", "debug", "train", {}),
        ("deep/down/in/a/folder-of-runs/two", "debug", "train", {"lr": 0.2, "updates": 90}),
        ("other/one", "alfworld_grpo_qwen35_4b", "train", {"lr": 0.01}),
        ("other/evaluated", "alfworld_grpo_qwen35_4b", "eval", {"checkpoint": "other/one"}),
    ]
    for name, recipe, command, more in kinds:
        run = new_run(root / name, config | more, recipe=recipe, command=command)
        evaluate(run, 80, _wins(len(recipe) % 20), split="valid_seen")
        evaluate(run, 80, _wins(len(name) % 20), split="valid_unseen", panel=name)


@pytest.mark.parametrize("width", [60, 80, 100, 130, 160])
def test_no_number_is_cut_however_narrow_the_terminal(tmp_path: Path, width: int) -> None:
    _mixed(tmp_path)
    cells = narrowed(run_cells(compare([tmp_path], Choice())))
    shown = fitted(cells, width)
    wide = max(map(len, text(replace(shown, spare=(), notes=())).splitlines()))
    assert wide <= max(width, 68)
    assert [row[0] for row in shown.rows] == [
        "folder-of-runs/one",
        "two",
        "evaluated",
        "other/one",
    ]
    for name in set(shown.head) - {"differs"}:
        kept, whole = shown.head.index(name), cells.head.index(name)
        printed = [row[kept] for row in shown.rows]
        assert printed == [row[whole] for row in cells.rows]
    assert {"valid_seen", "valid_unseen"} <= set(shown.head)
    missing = [name for name in cells.head if name not in shown.head]
    assert set(missing) <= set(cells.spare)
    assert all(name in shown.notes[-1] for name in missing)


def test_differs_is_folded_at_spaces_and_says_where_it_is_cut() -> None:
    words = "lr=0.03 evaluation.temperature=0.01 group_size=8 rollout.max_steps=50 updates=80"
    cells = Cells(("run", "differs"), [("a", words)], frozenset(), [], ("differs",))
    folded = fitted(cells, 28).rows[0][1].splitlines()
    assert folded == ["lr=0.03", "…ion.temperature=0.01", "group_size=8 …"]
    assert fitted(cells, 200).rows[0][1] == words
    assert fitted(cells, 10).head == ["run"]


def test_piped_text_is_no_wider_than_it_must_be(tmp_path: Path) -> None:
    _mixed(tmp_path)
    main([str(tmp_path), "--out", str(tmp_path / "t")])
    lines = (tmp_path / "t").read_text().split("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= 160
    main([str(tmp_path), "--format", "markdown", "--out", str(tmp_path / "t")])
    whole = (tmp_path / "t").read_text()
    assert str(tmp_path / "other/one") in whole
    assert "| lr=0.1 updates=4 |" in whole


def test_a_run_is_named_by_as_much_of_its_path_as_it_takes() -> None:
    paths = ["a/x", "b/x", "c/y", "c/sweep/0", "d"]
    assert shortest_tails(paths) == {
        "a/x": "a/x",
        "b/x": "b/x",
        "c/y": "y",
        "c/sweep/0": "sweep/0",
        "d": "d",
    }


def test_what_comes_with_recipe_or_command_does_not_differ(tmp_path: Path) -> None:
    _mixed(tmp_path)
    mixed = compare([tmp_path], Choice()).frame
    assert mixed["differs"].to_list() == ["lr=0.1 updates=4", "lr=0.2 updates=90", "", ""]
    # One seed's checkpoints are told apart; one of each seed is the same thing for every seed.
    for seed in (0, 1):
        settings = {"checkpoint": f"run-{seed}"}
        evaluate(new_run(tmp_path / f"e/{seed}", settings, seed=seed, command="eval"), 80, [True])
    compared = compare([tmp_path / "e"], Choice())
    assert compared.frame["differs"].to_list() == ["", ""]
    assert by_settings(compared).frame["runs"].to_list() == [2]
    again = new_run(tmp_path / "e/2", {"checkpoint": "run-0/update-4"}, command="eval")
    evaluate(again, 4, [True])
    found = compare([tmp_path / "e"], Choice()).frame
    assert found["differs"][2] == "checkpoint=run-0/update-4"
    # What was evaluated, though this run updated nothing.
    assert found["updates"].to_list() == [80, 80, 4]


def test_only_what_differs_is_named() -> None:
    base = {"lr": 0.1, "seed": 0, "recipe": "a", "advantage.name": "rloo", "advantage.eps": 1}
    assert differences([base, base | {"seed": 1, "recipe": "b"}]) == ["", ""]
    assert differences([base, base | {"lr": 0.2}]) == ["lr=0.1", "lr=0.2"]
    # Another component has other options: its name says it.
    other = base | {"advantage.name": "max_rl", "advantage.eps": 2, "advantage.power": 3}
    assert differences([base, other]) == ["advantage=rloo", "advantage=max_rl"]
    twin = base | {"advantage.eps": 5}
    assert differences([base, other, twin]) == [
        "advantage=rloo advantage.eps=1",
        "advantage=max_rl",
        "advantage=rloo advantage.eps=5",
    ]
    lists = [{"splits": ["a"], "x": None}, {"splits": ["a", "b"], "x": True}, {}]
    assert differences(lists) == ["splits=[a] x=null", "splits=[a,b] x=true", ""]


@pytest.mark.parametrize(
    ("choice", "success", "update"),
    [
        (Choice("last"), 0.5, 3),
        (Choice("best"), 0.75, 2),
        (Choice("window", 2), 0.625, 3),
        (Choice("window", 9), 1.6 / 3, 3),
    ],
)
def test_the_statistic_is_the_one_asked_for(
    tmp_path: Path, choice: Choice, success: float, update: int
) -> None:
    run = new_run(tmp_path)
    for number, count in enumerate((7, 15, 10), start=1):
        evaluate(run, number, _wins(count))
    compared = compare([tmp_path], choice)
    (shown,) = compared.frame.rows(named=True)
    assert shown["success_valid_unseen"] == pytest.approx(success)
    assert shown["update_valid_unseen"] == update
    assert (shown["low_valid_unseen"] is None) == (choice.statistic == "window")
    assert any(choice.describe() in note for note in compared.notes)


def test_return_and_invalid_actions_weigh_each_episode_once(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    evaluate(run, 1, _wins(10, 10), split="a")
    evaluate(run, 1, _wins(0, 30), split="b")
    (shown,) = compare([tmp_path], Choice()).frame.rows(named=True)
    assert shown["return"] == pytest.approx((10 * 0.9 - 30 * 0.1) / 40)
    assert shown["invalid_actions"] == pytest.approx(1.0)
    assert shown["tokens"] == 2 * 1050
    assert shown["cost"] is None


def test_a_run_without_one_evaluation_still_has_its_row(tmp_path: Path) -> None:
    new_run(tmp_path / "empty")
    run = new_run(tmp_path / "failed")
    nothing = {"n": 0, "won": 0, "errors": 3, "invalid_actions": 0, "panel_hash": "a"}
    run.append("evaluations", [row("evaluations", split="s", task_type="all", **nothing)])
    compared = compare([tmp_path], Choice())
    assert compared.frame["success_s"].to_list() == [None, None]
    assert main([str(tmp_path), "--out", str(tmp_path / "t")]) == 0


def test_seeds_of_the_same_settings_share_a_row(tmp_path: Path) -> None:
    _sweep(tmp_path)
    compared = compare([tmp_path], Choice())
    assert compared.frame["seeds"].to_list() == [2, 2, 1, 1]
    grouped = by_settings(compared).frame.rows(named=True)
    assert [entry["differs"] for entry in grouped] == ["lr=0.01", "lr=0.05"]
    assert grouped[0]["success_valid_unseen"] == pytest.approx((8 + 11) / 40)
    assert grouped[0]["lowest_valid_unseen"] == pytest.approx(0.4)
    assert [entry["finished"] for entry in grouped] == [2, 0]


def test_a_copied_run_is_a_row_of_its_own(tmp_path: Path) -> None:
    for name, count in (("a", 3), ("b", 9)):
        evaluate(new_run(tmp_path / name, run_id="same"), 1, _wins(count, 10))
    compared = compare([tmp_path], Choice()).frame
    assert compared["success_valid_unseen"].to_list() == [0.3, 0.9]


def test_pairs_are_counted_game_by_game(tmp_path: Path) -> None:
    evaluate(new_run(tmp_path / "a"), 1, [True, True, False, False, False, True])
    evaluate(new_run(tmp_path / "b"), 1, [True, False, True, True, True, True])
    (shown,) = pair([tmp_path / "a", tmp_path / "b"], Choice()).frame.rows(named=True)
    assert (shown["better"], shown["worse"], shown["games"]) == (3, 1, 6)
    assert shown["difference"] == pytest.approx(2 / 6)
    assert shown["p"] == mcnemar(3, 1)
    assert shown["low"] <= shown["difference"] <= shown["high"]
    assert shown["run"] == str(tmp_path / "b")


def test_repeats_count_by_game(tmp_path: Path) -> None:
    evaluate(new_run(tmp_path / "a"), 1, [True, False, True, True], repeats=2)
    evaluate(new_run(tmp_path / "b"), 1, [False, False, True, True], repeats=2)
    (shown,) = pair([tmp_path / "a", tmp_path / "b"], Choice()).frame.rows(named=True)
    assert (shown["games"], shown["better"], shown["worse"]) == (2, 0, 1)
    assert shown["difference"] == pytest.approx(-0.25)


def test_failed_episodes_are_in_no_pair(tmp_path: Path) -> None:
    evaluate(new_run(tmp_path / "a"), 1, [True, True, False])
    run = new_run(tmp_path / "b")
    evaluate(run, 1, [True, True, False])
    lines = (run.path / "episodes.ndjson").read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | {"error": "gone", "won": False})
    (run.path / "episodes.ndjson").write_text("\n".join(lines) + "\n")
    (shown,) = pair([tmp_path], Choice()).frame.rows(named=True)
    assert (shown["games"], shown["left_out"], shown["better"], shown["worse"]) == (2, 1, 0, 0)


def test_unlike_panels_are_not_paired_and_are_noted(tmp_path: Path) -> None:
    evaluate(new_run(tmp_path / "a"), 1, _wins(3), panel="aaaa")
    evaluate(new_run(tmp_path / "b"), 1, _wins(3, 10), panel="bbbb")
    with pytest.raises(AgenticRLError, match=r"unlike panels.*20 games.*aaaa"):
        pair([tmp_path], Choice())
    assert any("2 unlike panels" in note for note in compare([tmp_path], Choice()).notes)
    evaluate(new_run(tmp_path / "c"), 1, _wins(3), split="valid_seen")
    with pytest.raises(AgenticRLError) as caught:
        pair([tmp_path / "a", tmp_path / "c"], Choice())
    assert str(caught.value) == (
        f"no evaluated split is shared: {tmp_path}/a played valid_unseen;"
        f" {tmp_path}/c played valid_seen."
        f" Type: agentic-rl eval checkpoint={tmp_path}/c split=valid_unseen"
    )
    scored_too = {"checkpoint": "runs/g", "games": {"name": "builtin"}}
    evaluate(new_run(tmp_path / "g", scored_too, command="eval"), 1, _wins(3), split="y")
    # The weights of an evaluation lie elsewhere: the run that holds its own is rather scored.
    scored = {"checkpoint": "runs/d", "games": {"name": "alfworld"}}
    evaluate(new_run(tmp_path / "d", scored, command="eval"), 1, _wins(3), split="x")
    evaluate(new_run(tmp_path / "e", {"games": {"name": "builtin"}}), 1, _wins(3), split="y")
    with pytest.raises(AgenticRLError, match="eval checkpoint=runs/d games=builtin split=y"):
        pair([tmp_path / "d", tmp_path / "g"], Choice())
    with pytest.raises(AgenticRLError, match=r"eval checkpoint=.*/e games=alfworld split=x"):
        pair([tmp_path / "e", tmp_path / "d"], Choice())
    new_run(tmp_path / "f")
    with pytest.raises(AgenticRLError, match=r"f played none; .*eval checkpoint=.*/f split="):
        pair([tmp_path / "f", tmp_path / "a"], Choice())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "no folder 'nowhere'"),
        (["empty"], "no run in or below empty"),
        (["empty", "--formt", "csv"], "unrecognized arguments"),
        (["empty", "--format", "xml"], "invalid choice"),
        (["empty", "--window", "0"], "--window is below 1"),
        (["one", "--format", "parquet"], "needs --out"),
        (["one", "--pair"], "the only run"),
        (["one", "--pair", "--statistic", "window"], "--pair goes with"),
        (["one", "--out", "no/such/folder/t"], "cannot be written"),
        (["one", "--format", "parquet", "--out", "no/such/folder/t"], "cannot be written"),
    ],
)
def test_slips_are_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "empty").mkdir()
    new_run(tmp_path / "one")
    with inside(tmp_path), pytest.raises(AgenticRLError, match=message) as caught:
        main(words)
    assert "\n" not in str(caught.value)
