"""What the policy reads from a view: the goal's words, and the facts of the history."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rl.backend.linear.candidates import candidates_of
from agentic_rl.backend.linear.features import WIDTH, FeatureTable, State, names
from agentic_rl.backend.linear.history import Goal, History, command_of, goal_of, sight_of
from agentic_rl.types import View

INTRO = "You are in the middle of a room. Looking quickly around you, you see a fridge 1."
PLAY = (
    (INTRO, "go to fridge 1"),
    ("You arrive at fridge 1. The fridge 1 is closed.", "open fridge 1"),
    ("You open the fridge 1. The fridge 1 is open. In it, you see a apple 2, and a egg 1.", None),
    (
        "You open the fridge 1. The fridge 1 is open. In it, you see a apple 2, and a egg 1.",
        "take apple 2 from fridge 1",
    ),
    ("You pick up the apple 2 from the fridge 1.", "go to sinkbasin 1"),
    (
        "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.",
        "clean apple 2 with sinkbasin 1",
    ),
    ("You clean the apple 2 using the sinkbasin 1.", "take egg 1 from fridge 1"),
    ("Nothing happens.", "go to countertop 1"),
)
END = "You arrive at countertop 1. On the countertop 1, you see a apple 1, and a mug 1."
VIEW = View("put a clean apple in countertop.", PLAY, END, ("look",))


@pytest.mark.parametrize(
    ("task", "goal"),
    [
        ("put a clean apple in fridge.", Goal("clean", "apple", "fridge")),
        ("heat some egg and put it in garbagecan.", Goal("heat", "egg", "garbagecan")),
        ("put a cool tomato in microwave.", Goal("cool", "tomato", "microwave")),
        ("put some soapbottle on toilet.", Goal("put", "soapbottle", "toilet")),
        ("find two soapbar and put them in cabinet.", Goal("two", "soapbar", "cabinet")),
        ("put two cd in safe.", Goal("two", "cd", "safe")),
        ("look at bowl under the desklamp.", Goal("look", "bowl", "desklamp")),
        ("examine the cellphone with the desklamp.", Goal("look", "cellphone", "desklamp")),
        ("move the key 1 to box 3.", Goal("put", "key 1", "box 3")),
        ("find the coin 1.", Goal("find", "coin 1", "")),
        ("", Goal("find", "", "")),
    ],
)
def test_goals(task: str, goal: Goal) -> None:
    assert goal_of(task) == goal


def test_a_named_place_is_that_place_alone() -> None:
    goal = goal_of("move the key 1 to box 3.")
    assert [goal.match(name) for name in ("key 1", "box 3", "box 2", "")] == ["t", "d", "x", "-"]


def test_commands() -> None:
    assert command_of("go to desk 1") == ("go", "", "desk 1")
    assert command_of("open drawer 12") == ("open", "", "drawer 12")
    assert command_of("move cup 1 to desk 2") == ("move", "cup 1", "desk 2")
    assert command_of("heat egg 1 with microwave 1").type == "microwave"
    assert command_of("use desklamp 1").type == "desklamp"
    assert command_of("look") == ("look", "", "")


def test_sights() -> None:
    assert sight_of(END) == ("countertop 1", False, ("apple 1", "mug 1"))
    assert sight_of("The fridge 1 is closed.") == ("fridge 1", True, ())
    assert sight_of("On the desk 1, you see nothing.") == ("desk 1", False, ())
    assert sight_of("Nothing happens.") is None
    assert sight_of(INTRO) is None


def test_facts_of_a_game() -> None:
    history = History.of(VIEW)
    assert (history.place, history.held, history.last) == ("countertop 1", "apple 2", "go")
    assert history.processed == {("apple 2", "clean")}
    assert history.where == {
        "egg 1": "fridge 1",
        "apple 1": "countertop 1",
        "mug 1": "countertop 1",
    }
    assert history.closed == set()
    assert history.given["take egg 1 from fridge 1"] == 1
    history.add("move apple 2 to countertop 1", "You move the apple 2 to the countertop 1.")
    assert history.delivered == {"apple 2"}
    assert history.held == ""


def test_a_reply_without_an_action_leaves_all_facts() -> None:
    assert History.of(View(VIEW.task, PLAY[:3], PLAY[3][0], ())).where == {
        "apple 2": "fridge 1",
        "egg 1": "fridge 1",
    }


@given(st.integers(0, len(PLAY)))
def test_history_is_a_fold(cut: int) -> None:
    """Facts taken step by step equal those of the whole view."""
    now = PLAY[cut][0] if cut < len(PLAY) else END
    history = History.of(View(VIEW.task, PLAY[:cut], now, ()))
    observations = [observation for observation, _ in PLAY[1:]] + [END]
    for (_, action), after in list(zip(PLAY, observations, strict=True))[cut:]:
        history.add(action, after)
    assert history == History.of(VIEW)


def test_a_window_knows_less_but_reads_the_list() -> None:
    window = View(VIEW.task, PLAY[-1:], END, ("move apple 2 to countertop 1",))
    assert History.of(window).held == ""
    assert State(History.of(window), window.actions).key[1] == "t"
    assert History.of(View(VIEW.task, (), INTRO, ())).given == {}


def test_equal_signatures_share_their_features_and_others_do_not() -> None:
    table = FeatureTable(12)
    state = State(History.of(VIEW), VIEW.actions)
    names_ = ("go to desk 1", "go to desk 2", "go to fridge 1")
    columns = table.columns(state, [(name, "listed") for name in names_])
    assert columns.shape == (WIDTH, 3)
    assert columns.max() < 1 << 12
    assert columns[:, 0].tolist() == columns[:, 1].tolist() != columns[:, 2].tolist()


@settings(max_examples=20)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1), st.integers(1, 9))
def test_the_memory_changes_nothing(order: list[str], limit: int) -> None:
    """It holds what a fresh table computes, in whatever order commands are met or forgotten."""
    table, state = FeatureTable(12, limit), State(History.of(VIEW), VIEW.actions)
    for letter in order:
        command = [(f"go to {letter} 1", "listed"), (f"open {letter} 1", "unlisted")]
        again = State(History.of(VIEW), VIEW.actions)
        fresh = FeatureTable(12).columns(again, command)
        assert table.columns(state, command).tolist() == fresh.tolist()


def test_the_table_grows() -> None:
    table, state = FeatureTable(12), State(History.of(VIEW), VIEW.actions)
    first = table.columns(state, [("open a 1", "listed")]).tolist()
    for number in range(1500):
        table.columns(state, [(f"open thing{number} 1", "listed")])
    assert table.columns(state, [("open a 1", "listed")]).tolist() == first


def test_feature_names_are_distinct() -> None:
    assert len(set(names(("a",) * 10, ("b",) * 9))) == WIDTH


def test_candidates_hold_refused_and_malformed_ones() -> None:
    found = candidates_of(VIEW, History.of(VIEW))
    assert [(c.command, c.form) for c in found] == [
        ("look", "listed"),
        ("go to countertop 1", "unlisted"),
        ("take apple 1 from countertop 1", "unlisted"),
        ("look", "bare"),
        ("I am not sure what to do next.", "idle"),
    ]
