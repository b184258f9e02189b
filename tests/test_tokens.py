"""The growing token sequence, against hostile templates and tokenizers."""

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import agentic_rl.backend
from agentic_rl.backend.tokenizer import ChatTokenizer
from agentic_rl.errors import BackendError
from agentic_rl.protocol.think_action import ThinkAction
from agentic_rl.protocol.tool_call import ToolCall
from agentic_rl.tokens import Codec, Conversation, TokenPrefix
from agentic_rl.types import Completion, EnvStep, Message, Step, Task
from tests.hostile_tokenizers import ENCODERS, GROWING, REWRITING, chat

TASK = Task("game", "train", "pick", "", "")
START = "You are in a room.\n\nYour task is to: find the pen."
TEXT = st.one_of(
    st.text("ab1 .:\n-<>/'s", max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(["go to desk 1", "</s", "</s>", " ", "\n", "", "<|im_end|>", "1</s>\n "]),
)
CASES = [(name, template) for name in ENCODERS for template in GROWING]
SHIPPED = Path(agentic_rl.backend.__file__).parent / "linear_tokenizer"


@functools.cache
def _codec(name: str, template: str) -> Codec:
    return Codec(chat(name, {**GROWING, **REWRITING}[template]), ToolCall())


def _step(completion: Completion, observation: str) -> Step:
    result = EnvStep(observation, ("look",))
    return Step(START, ("look",), None, completion, "look", False, False, result)


def _said(tokens: Sequence[int], text: str, stop: str = "stop") -> Completion:
    return Completion(tuple(tokens), (-1.0,) * len(tokens), text, stop)  # type: ignore[arg-type]


def _open(codec: Codec) -> Conversation:
    conversation = Conversation(codec, TASK)
    conversation.open(codec.protocol.opening(TASK, START, ("look",)))
    return conversation


def _play(codec: Codec, turns: Sequence[tuple[Completion, str]]) -> tuple[Conversation, list[Step]]:
    conversation, steps = _open(codec), []
    for completion, observation in turns:
        segment, start, end = conversation.add_completion(completion.tokens)
        step = _step(completion, observation)
        steps.append(step)
        prompt = conversation.add_reply(steps)
        assert conversation.segments[segment][start:end] == completion.tokens
        assert len(prompt) > 0
    return conversation, steps


def _whole(codec: Codec, steps: Sequence[Step]) -> str:
    result = steps[-1].result
    messages = codec.protocol.window(TASK, steps, result.observation, result.admissible_actions)
    protocol = codec.protocol
    return codec.tokenizer.render(messages, protocol.tools, True, protocol.template_options)


@pytest.mark.parametrize(("name", "template"), CASES)
def test_templates_that_leave_history_alone_are_seen_as_such(name: str, template: str) -> None:
    framing = _codec(name, template).framing
    assert framing.incremental and "never rewritten" in framing.note


@pytest.mark.parametrize("template", REWRITING)
@pytest.mark.parametrize("name", ENCODERS)
def test_templates_that_rewrite_history_are_found_out(name: str, template: str) -> None:
    framing = _codec(name, template).framing
    assert not framing.incremental and "rewrites history" in framing.note


def test_thinking_that_is_kept_is_no_reason_to_render_whole() -> None:
    thinking = ToolCall(template_options={"enable_thinking": True})
    assert Codec(chat("bytes", GROWING["qwen-like"]), thinking).framing.incremental


def test_a_special_marker_makes_the_tokens_those_of_a_whole_encoding() -> None:
    for name in ("bytes", "words"):
        framing = _codec(name, "chatml").framing
        assert framing.exact and framing.end == "<|im_end|>"
    merged = _codec("merges-everywhere", "plain").framing
    assert merged.end == "</s>" and not merged.exact
    assert "differ from a whole encoding" in merged.note


@pytest.mark.parametrize(("name", "template"), CASES)
@settings(max_examples=25)
@given(st.lists(st.tuples(TEXT, st.booleans(), TEXT), min_size=1, max_size=4))
@example([("a</s", False, "b"), ("", False, " b\n"), ("c", True, "\n")])
def test_grown_prompts_equal_whole_ones(
    name: str, template: str, turns: list[tuple[str, bool, str]]
) -> None:
    """Text always; tokens where the probe says so and the completion is what a tokenizer gives."""
    codec = _codec(name, template)
    framing, encode = codec.framing, codec.tokenizer.encode
    lead = framing.before.partition(framing.end)[0] if framing.end else ""
    sampled: list[tuple[Completion, str]] = []
    for text, ended, observation in turns:
        # A template that trims replies, or takes marks of thinking apart, is not asked about them.
        assume(text == text.strip() and "think>" not in text)
        # A marker within a text is the end of a turn.
        assume("<|im_end|>" not in text + observation and "</s>" not in text)
        marked = f"{text}{lead}{framing.end}" if ended else text
        sampled.append((_said(encode(marked), text, "stop" if ended else "length"), observation))
    conversation, steps = _play(codec, sampled)
    grown, whole = list(conversation.prompt()), _whole(codec, steps)
    if name != "words":
        assert codec.tokenizer.decode(grown) == whole
    place = list(_open(codec).prompt())
    natural = all(
        encode(codec.tokenizer.decode(place) + entry.text) == place + encode(entry.text)
        for entry, _ in sampled
    )
    if framing.exact and natural and name != "words":
        assert grown == encode(whole)


@pytest.mark.parametrize(("name", "template"), CASES)
@settings(max_examples=15)
@given(st.data())
def test_what_is_learned_from_is_what_was_sampled(
    name: str, template: str, data: st.DataObject
) -> None:
    """Any token at all, broken characters and stray markers included, cut or not."""
    codec = _codec(name, template)
    token = st.integers(0, codec.tokenizer.vocabulary_size - 1)
    conversation, steps, places = _open(codec), [], []
    for _ in range(data.draw(st.integers(1, 4))):
        tokens = tuple(data.draw(st.lists(token, min_size=1, max_size=6)))
        stop = data.draw(st.sampled_from(["stop", "length"]))
        completion = _said(tokens, codec.tokenizer.decode(tokens), stop)
        places.append((conversation.add_completion(tokens), tokens))
        steps.append(_step(completion, data.draw(TEXT)))
        before = list(conversation.segments[-1])
        assert list(conversation.add_reply(steps))[: len(before)] == before
    assert len(conversation.segments) == 1
    for (segment, start, end), tokens in places:
        assert conversation.segments[segment][start:end] == tokens
    # Nothing behind the last sampled token is there to learn from.
    assert len(conversation.segments[-1]) == places[-1][0][2]


@pytest.mark.parametrize("template", REWRITING)
def test_a_rewritten_history_begins_a_new_segment_each_turn(template: str) -> None:
    codec = _codec("bytes", template)
    encode = codec.tokenizer.encode
    texts = [f"<think>\nso\n</think>\n\nsay {n}" for n in range(3)]
    turns = [(_said(encode(f"{text}<|im_end|>"), text), "seen") for text in texts]
    conversation, steps = _play(codec, turns)
    assert list(conversation.prompt()) == encode(_whole(codec, steps))
    # The prompt that nothing was sampled for is no segment.
    assert len(conversation.segments) == 3
    for segment, (completion, _) in zip(conversation.segments, turns, strict=True):
        assert segment[-len(completion.tokens) :] == completion.tokens


def test_a_window_begins_a_new_segment_each_turn() -> None:
    codec = Codec(chat("bytes", GROWING["chatml"]), ThinkAction())
    assert "window" in codec.framing.note
    turns = [(_said(codec.tokenizer.encode("a<|im_end|>"), "a"), "seen")] * 3
    assert len(_play(codec, turns)[0].segments) == 3


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("template", ["chatml", "plain", "space-before-marker"])
def test_a_sampled_end_marker_is_not_doubled(name: str, template: str) -> None:
    codec = _codec(name, template)
    end = codec.framing.end
    for text in ("look", "look\n", "x<", "1."):
        tokens = codec.tokenizer.encode(f"{text}{end}")
        conversation, _ = _play(codec, [(_said(tokens, text), "seen")])
        shown = codec.tokenizer.decode(list(conversation.prompt()))
        opened = codec.tokenizer.decode(list(_open(codec).prompt()))
        assert shown.startswith(f"{opened}{text}{end}") or name == "words"
        assert not shown[len(opened) + len(text) + len(end) :].lstrip().startswith(end)


def test_half_a_marker_that_was_cut_is_text() -> None:
    codec = _codec("bytes-no-special", "plain")
    encode, decode = codec.tokenizer.encode, codec.tokenizer.decode
    assert len(encode("</s>")) > 1
    conversation, _ = _play(codec, [(_said(encode("look</"), "look</", "length"), "seen")])
    assert "look</</s>\nTOOL: " in decode(list(conversation.prompt()))


def test_a_marker_that_is_the_next_role_is_not_doubled() -> None:
    codec = _codec("bytes", "marker-is-the-next-role")
    tokens = codec.tokenizer.encode("look<|tool|>")
    conversation, _ = _play(codec, [(_said(tokens, "look"), "seen")])
    assert codec.tokenizer.decode(list(conversation.prompt())).count("<|tool|>") == 1


def test_the_shipped_tokenizer_grows_exactly() -> None:
    framing = Codec(ChatTokenizer.from_folder(SHIPPED), ToolCall()).framing
    assert framing.incremental and framing.exact and framing.end == "<|im_end|>"


def test_a_template_that_refuses_the_protocol_says_so() -> None:
    refusing = "{{- raise_exception('no tools here') -}}"
    with pytest.raises(BackendError, match="no tools here"):
        Codec(chat("bytes", refusing), ToolCall())


def test_a_fork_grows_apart() -> None:
    codec = _codec("bytes", "chatml")
    parent = _open(codec)
    child = parent.fork()
    before = list(parent.prompt())
    child.add_completion([1, 2, 3])
    assert list(parent.prompt()) == before and list(child.prompt()) == [*before, 1, 2, 3]
    assert parent.segments == ()


@given(st.lists(st.integers(0, 9)), st.integers(0, 12), st.slices(12))
def test_a_prefix_is_the_list_it_stands_for(tokens: list[int], length: int, cut: slice) -> None:
    length = min(length, len(tokens))
    shown = tokens[:length]
    prefix = TokenPrefix(tokens, length)
    tokens += [7, 7]
    assert len(prefix) == length and list(prefix) == shown
    assert prefix[cut] == shown[cut] and tuple(prefix) == tuple(shown)
    for index in range(-length, length):
        assert prefix[index] == shown[index]
    for index in (length, -length - 1):
        with pytest.raises(IndexError):
            prefix[index]


def test_replies_take_the_role_that_the_protocol_gives_them() -> None:
    codec = _codec("bytes", "chatml")
    assert "<|im_start|>tool\n" in codec.framing.before
    tail = codec.encode_reply(_said((), "x", "length"), Message("tool", "seen"))
    assert codec.tokenizer.decode(tail) == codec.framing.tail("seen", ended=False)
