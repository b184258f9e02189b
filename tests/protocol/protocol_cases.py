"""Steps without an environment, and how to read a prompt's text back into a view."""

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from agentic_rl.types import Completion, EnvStep, Step, Task, View

TASK = Task("game", "train", "pick_and_place", "", "")
FIRST = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly"
    " around you, you see a desk 1, and a shelf 1.\n\nYour task is to: put a pen in shelf."
)


def step(
    observation: str,
    actions: Sequence[str],
    action: str | None,
    then: str,
    then_actions: Sequence[str],
    *,
    admissible: bool = True,
    done: bool = False,
) -> Step:
    result = EnvStep(then, tuple(then_actions), admissible, float(done), done, done)
    text = "no call" if action is None else f"said {action}"
    completion = Completion((), (), text, "stop")
    return Step(
        observation, tuple(actions), None, completion, action, action is None, False, result
    )


_WORDS = st.text("abcdefgh 12", min_size=1, max_size=12).map(str.strip).filter(bool)
_LINES = st.lists(_WORDS, min_size=1, max_size=3).map("\n".join)
_PADDED = st.tuples(st.sampled_from(["", "\n", " "]), _LINES, st.sampled_from(["", "\n", "  "]))
_MENUS = st.lists(_WORDS, min_size=1, max_size=5, unique=True).map(lambda a: (*sorted(a), "help"))


@st.composite
def histories(draw: st.DrawFn, most: int = 6) -> tuple[list[Step], str, tuple[str, ...]]:
    """Steps that fit together, then what is seen now and the actions there are."""
    seen, menu = FIRST, draw(_MENUS)
    steps: list[Step] = []
    for _ in range(draw(st.integers(0, most))):
        action = draw(st.one_of(st.none(), _WORDS))
        if action is None:
            then, then_menu = seen, menu
        else:
            then, then_menu = "".join(draw(_PADDED)), draw(_MENUS)
        admissible = action is not None and draw(st.booleans())
        steps.append(step(seen, menu, action, then, then_menu, admissible=admissible))
        seen, menu = then, then_menu
    return steps, seen, menu


def menu_of(text: str) -> tuple[str, ...]:
    return tuple(line[2:] for line in text.splitlines() if line.startswith("- "))


def between(text: str, before: str, after: str) -> str:
    match = re.search(rf"{re.escape(before)}(.*?){re.escape(after)}", text, re.DOTALL)
    assert match is not None, f"{before!r} ... {after!r} not in {text!r}"
    return match.group(1)


def tool_call_view(texts: Sequence[str], actions: Sequence[str | None]) -> View:
    """From the user's first message and the tool's messages, and the actions of the replies."""
    task = between(texts[0], "Task: ", "\nCurrent step:")
    seen = [
        between(text, "Current observation:\n", "\nAvailable actions (copy one exactly):")
        for text in texts
    ]
    return View(task, tuple(zip(seen[:-1], actions, strict=True)), seen[-1], menu_of(texts[-1]))


def think_action_view(text: str) -> View:
    shown = re.findall(
        r"^\[Observation \d+: '(.*?)', Action \d+: '(.*?)'\]$", text, re.DOTALL | re.MULTILINE
    )
    return View(
        between(text, "Your task is to: ", "\n"),
        tuple((seen, None if act == "none (invalid reply)" else act) for seen, act in shown),
        between(text, "Your current observation is: ", "\nYour admissible actions are:"),
        menu_of(text),
    )
