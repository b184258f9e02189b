"""Tags, and a window of the last steps."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from protocol_cases import FIRST, TASK, histories, step, think_action_view

from agentic_rl.errors import ConfigError
from agentic_rl.protocol.think_action import ThinkAction
from agentic_rl.types import Step

CHINESE = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
ACTIONS = (
    st.text(st.characters(exclude_categories=["Cs"]))
    .map(lambda text: "".join(c for c in text if not "\u4e00" <= c <= "\u9fff").strip())
    .filter(bool)
)


@given(ACTIONS, st.sampled_from(["", "so\nbe it", "<action>look</action>", "</think>"]))
@example("</action>", "")
@example("<action>look</action>", "")
@example("<think>&lt;&amp;amp;", "")
@example("\u3400 \ud7ff é 🧊", "")
def test_what_is_rendered_is_parsed_back(action: str, reasoning: str) -> None:
    assert ThinkAction().parse(ThinkAction().render(action, reasoning)).action == action


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "look",
        "<action>look</action>",
        "<think>hm</think>",
        "<think>hm</think><action></action>",
        "<think>hm</think><action>  </action>",
        "<think>hm<action>look</action>",
        "<think>hm</think><action>look",
        "<think>走</think><action>look</action>",
        "<think>hm</think><action>look</action> 好",
        "<THINK>hm</THINK><action>look</action>",
    ],
)
def test_a_missing_pair_of_tags_or_chinese_is_malformed(reply: str) -> None:
    parsed = ThinkAction().parse(reply)
    assert parsed.action is None and parsed.problem


@given(CHINESE)
def test_the_whole_block_of_chinese_characters_is_malformed(character: str) -> None:
    reply = f"<think>{character}</think><action>look</action>"
    assert ThinkAction().parse(reply).action is None


@pytest.mark.parametrize("character", ["\u4dff", "\ua000", "あ", "한"])
def test_characters_beside_the_block_are_not(character: str) -> None:
    reply = f"<think>{character}</think><action>look</action>"
    assert ThinkAction().parse(reply).action == "look"


@given(histories(), st.integers(0, 3))
def test_the_view_is_what_the_text_shows(
    history: tuple[list[Step], str, tuple[str, ...]], length: int
) -> None:
    steps, seen, menu = history
    protocol = ThinkAction(history_length=length)
    (message,) = protocol.window(TASK, steps, seen, menu)
    assert protocol.view(TASK, steps, seen, menu) == think_action_view(message.content)
    assert message.content.count("[Observation ") == min(length, len(steps))


def test_a_bad_reply_is_answered_by_nothing_happens() -> None:
    taken = step(FIRST, ["look"], None, FIRST, ["look"], admissible=False)
    protocol = ThinkAction()
    assert protocol.reply(taken, 1).content == "Nothing happens."
    text = protocol.window(TASK, [taken], FIRST, ["look"])[0].content
    assert "Your current observation is: Nothing happens." in text
    assert "Action 1: 'none (invalid reply)'" in text


def test_history_length_is_not_negative() -> None:
    with pytest.raises(ConfigError, match=r"protocol\.history_length=-1"):
        ThinkAction(history_length=-1)
