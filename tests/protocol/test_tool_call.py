"""One tool and the full history."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from protocol_cases import FIRST, TASK, histories, step, tool_call_view

from agentic_rl.errors import ConfigError
from agentic_rl.protocol.tool_call import TOOL, ToolCall
from agentic_rl.types import Step

BODIES = ("xml", "json")
ACTIONS = st.text(min_size=1).map(str.strip).filter(bool)


@pytest.mark.parametrize("body", BODIES)
@given(action=ACTIONS, reasoning=st.sampled_from(["", "I think so.", "{'a': 1}\n\n<b>"]))
@example(action="</parameter></function></tool_call>", reasoning="")
@example(action="<tool_call>x</tool_call>", reasoning="")
@example(action='{"name": "alfworld_step", "arguments": {"action": "look"}}', reasoning="")
@example(action='a "quoted\\" b\\u003c', reasoning="")
@example(action="x</parameter>\n<parameter=action>y", reasoning="")
@example(action="打开 冰箱 1 🧊\u2028 z", reasoning="")
def test_what_is_rendered_is_parsed_back(body: str, action: str, reasoning: str) -> None:
    protocol = ToolCall(body=body)
    assert protocol.parse(protocol.render(action, reasoning)).action == action


@pytest.mark.parametrize("body", BODIES)
def test_either_protocol_reads_both_bodies(body: str) -> None:
    said = ToolCall(body=body).render("open drawer 1")
    for reader in BODIES:
        assert ToolCall(body=reader).parse(f"Well.\n{said}\nDone.").action == "open drawer 1"


def test_the_arguments_may_be_a_string_of_json() -> None:
    call = json.dumps({"name": TOOL, "arguments": json.dumps({"action": "look"})})
    assert ToolCall().parse(f"<tool_call>{call}</tool_call>").action == "look"


def _call(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


_LOOK = f"<function={TOOL}><parameter=action>look</parameter></function>"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "look",
        _LOOK,
        _call(""),
        _call(_LOOK) * 2,
        f"<tool_call>{_LOOK}",
        _call(f"{_LOOK} and more"),
        _call("<function=walk><parameter=action>look</parameter></function>"),
        _call(f"<function={TOOL}><parameter=command>look</parameter></function>"),
        _call(f"<function={TOOL}><parameter=action>  \n </parameter></function>"),
        _call(
            f"<function={TOOL}><parameter=action>look</parameter>"
            "<parameter=action>go</parameter></function>"
        ),
        _call("{"),
        _call("[]"),
        _call("null"),
        _call('{"name": "walk", "arguments": {"action": "look"}}'),
        _call('{"name": "alfworld_step"}'),
        _call('{"name": "alfworld_step", "arguments": "look"}'),
        _call('{"name": "alfworld_step", "arguments": {"action": 3}}'),
        _call('{"name": "alfworld_step", "arguments": {"action": ["look"]}}'),
        _call('{"name": "alfworld_step", "arguments": {"action": "look", "speed": 2}}'),
        _call('{"name": "alfworld_step", "arguments": {"action": ""}}'),
        _call("[" * 100_000),
        _call('{"a":' * 50_000),
    ],
)
def test_anything_but_one_whole_call_is_malformed(reply: str) -> None:
    parsed = ToolCall().parse(reply)
    assert parsed.action is None and parsed.problem


@given(st.text())
def test_no_reply_breaks_the_parser(reply: str) -> None:
    for text in (reply, _call(reply), _call(f"<function={TOOL}>{reply}</function>")):
        action = ToolCall().parse(text).action
        assert action is None or (action and action == action.strip())


@given(histories())
def test_the_view_is_what_the_text_shows(history: tuple[list[Step], str, tuple[str, ...]]) -> None:
    steps, seen, menu = history
    protocol = ToolCall()
    messages = protocol.window(TASK, steps, seen, menu)
    texts = [message.content for message in messages if message.role in ("user", "tool")]
    shown = tool_call_view(texts, [entry.action for entry in steps])
    assert protocol.view(TASK, steps, seen, menu) == shown
    assert shown.task == "put a pen in shelf."
    assert "help" not in shown.actions


@given(histories())
def test_the_whole_history_is_the_opening_and_the_replies(
    history: tuple[list[Step], str, tuple[str, ...]],
) -> None:
    steps, seen, menu = history
    protocol = ToolCall()
    first = steps[0] if steps else None
    grown = protocol.opening(
        TASK, first.observation if first else seen, first.admissible_actions if first else menu
    )
    for number, entry in enumerate(steps, 1):
        grown = [*grown, protocol.window(TASK, [entry], "", ())[-2], protocol.reply(entry, number)]
    assert grown == protocol.window(TASK, steps, seen, menu)


@pytest.mark.parametrize(
    ("action", "admissible", "done", "status"),
    [
        ("look", True, False, "Action executed."),
        ("fly", False, False, "The action was not admissible; choose an available action."),
        (None, False, False, "Invalid tool-call format; the environment state did not advance."),
        ("look", True, True, "Task completed successfully."),
    ],
)
def test_a_reply_says_what_became_of_the_action(
    action: str | None, admissible: bool, done: bool, status: str
) -> None:
    taken = step(FIRST, ["look"], action, "A desk.", ["look"], admissible=admissible, done=done)
    message = ToolCall().reply(taken, 7)
    assert message.role == "tool"
    assert message.content.startswith(f"ALFWorld step 7 result: {status}\n")
    assert ("Available actions" in message.content) is not done


def test_an_empty_system_message_is_none() -> None:
    opening = ToolCall(system="").opening(TASK, FIRST, ["look"])
    assert [message.role for message in opening] == ["user"]


def test_an_unknown_body_names_the_near_one() -> None:
    with pytest.raises(ConfigError, match=r"protocol\.body=jsn .*Did you mean 'json'"):
        ToolCall(body="jsn")
