"""Prompts as token sequences that only ever grow: what was sampled is never encoded again.

`probe` finds once, for a tokenizer's chat template, the text between an assistant's content and a
reply's, and the text after the reply. Where the template proves to rewrite history (it drops
earlier thinking, moves the tools ...), every prompt is rendered whole instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import overload

from agentic_rl.interfaces import PromptProtocol, Tokenizer
from agentic_rl.types import Completion, EnvStep, Message, Step, Task

_SAID = "assistantcontent"
_REPLY = "replycontent"
_THOUGHT = "so be it\n</think>\n\n"
_WHOLE = (
    "the chat template rewrites history: every prompt is rendered whole and begins a new segment"
)
_WINDOW = "this protocol shows a window of the history: every prompt begins a new segment"
_TASK = Task("probe", "", "", "", "")
_OBSERVATION = "You are in a room.\n\nYour task is to: probe."
# Ends and beginnings at which careless tokenizers merge, and careless templates trim.
_REPLIES = ("one", "two: a\n- b", "x" * 40, "\n b\n\nc \n", "<d> & 'e' {{f}}", "é 🧊\u3000.", "1")
_SAYINGS = ("go to desk 1", "a", "1.5", "b\nc", "'d'", "é🧊", "(", "end.")


class TokenPrefix(Sequence[int]):
    """The first `length` tokens of a list that only grows; costs nothing to take."""

    __slots__ = ("_length", "_tokens")

    def __init__(self, tokens: list[int], length: int) -> None:
        self._tokens = tokens
        self._length = length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return self._tokens[: self._length][index]
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(f"token {index} of {self._length}")
        return self._tokens[position]

    def __iter__(self) -> Iterator[int]:
        return iter(self._tokens[: self._length])


@dataclass(frozen=True, slots=True)
class Framing:
    """How the chat template wraps a reply.

    `incremental` where history is never rewritten; `exact` where the tokens, too, are those of a
    whole encoding. `end` is the marker that closes a turn, as a model samples it; `trims` says that
    the template takes white space off a reply.
    """

    incremental: bool
    note: str
    before: str = ""
    after: str = ""
    end: str = ""
    trims: bool = False
    exact: bool = False

    def tail(self, reply: str, *, ended: bool) -> str:
        """The text from the end of a completion to where the next one begins."""
        before = self.before.partition(self.end)[2] if ended and self.end else self.before
        return f"{before}{reply.strip() if self.trims else reply}{self.after}"


class Codec:
    """A tokenizer, a protocol and what the probe found: what turns messages into tokens."""

    def __init__(self, tokenizer: Tokenizer, protocol: PromptProtocol) -> None:
        self.tokenizer = tokenizer
        self.protocol = protocol
        self.framing = probe(tokenizer, protocol)
        self._end = tuple(tokenizer.encode(self.framing.end)) if self.framing.end else ()

    @property
    def grows(self) -> bool:
        """The next prompt is this one with what was sampled and the reply behind it."""
        return self.protocol.keeps_full_history and self.framing.incremental

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """A whole prompt, up to where the assistant begins."""
        return self.tokenizer.encode(_render(self.tokenizer, self.protocol, messages))

    def encode_reply(self, completion: Completion, reply: Message) -> list[int]:
        """What follows a completion: the assistant's closing, the reply, and the next opening.

        The marker that closes a turn is not repeated where it was sampled.
        """
        framing = self.framing
        if self._end and completion.tokens[-len(self._end) :] == self._end:
            return self.tokenizer.encode(framing.tail(reply.content, ended=True))
        tail = framing.tail(reply.content, ended=False)
        return self.tokenizer.encode(tail[self._closed(completion) :])

    def _closed(self, completion: Completion) -> int:
        """Characters of the closing that were sampled beyond the completion's own text."""
        if completion.stop_reason != "stop":
            return 0
        said = self.tokenizer.decode(completion.tokens)
        if not said.startswith(completion.text):
            return 0
        beyond = said[len(completion.text) :]
        return len(beyond) if self.framing.before.startswith(beyond) else 0


class Conversation:
    """The tokens of one trajectory; a new segment begins where a prompt rewrites the last."""

    def __init__(self, codec: Codec, task: Task) -> None:
        self._codec = codec
        self._task = task
        self._segments: list[list[int]] = []
        self._sampled_to: list[int] = []

    def open(self, messages: Sequence[Message]) -> TokenPrefix:
        self._begin(self._codec.encode_prompt(messages))
        return self.prompt()

    def prompt(self) -> TokenPrefix:
        return TokenPrefix(self._segments[-1], len(self._segments[-1]))

    def fork(self) -> "Conversation":
        """Another conversation with the same beginning."""
        other = Conversation(self._codec, self._task)
        other._segments = [list(segment) for segment in self._segments]
        other._sampled_to = list(self._sampled_to)
        return other

    @property
    def segments(self) -> tuple[tuple[int, ...], ...]:
        """What there is to learn from: each segment up to the last token sampled in it."""
        return tuple(
            tuple(segment[:end])
            for segment, end in zip(self._segments, self._sampled_to, strict=True)
            if end
        )

    def add_completion(self, tokens: Sequence[int]) -> tuple[int, int, int]:
        """Where it lies: (segment, prompt_end, completion_end)."""
        segment = self._segments[-1]
        start = len(segment)
        segment.extend(tokens)
        self._sampled_to[-1] = len(segment)
        return len(self._segments) - 1, start, len(segment)

    def add_reply(self, steps: Sequence[Step]) -> TokenPrefix:
        """The prompt of the next turn, `steps` being all turns so far."""
        last = steps[-1]
        protocol = self._codec.protocol
        if self._codec.grows:
            reply = protocol.reply(last, len(steps))
            self._segments[-1] += self._codec.encode_reply(last.completion, reply)
            return self.prompt()
        result = last.result
        messages = protocol.window(self._task, steps, result.observation, result.admissible_actions)
        tokens = self._codec.encode_prompt(messages)
        segment = self._segments[-1]
        if tokens[: len(segment)] == segment:
            segment += tokens[len(segment) :]
        else:
            self._begin(tokens)
        return self.prompt()

    def _begin(self, tokens: list[int]) -> None:
        self._segments.append(tokens)
        self._sampled_to.append(0)


def probe(tokenizer: Tokenizer, protocol: PromptProtocol) -> Framing:
    """Finds the wrapping of a reply and proves it against full renderings of conversations."""
    if not protocol.keeps_full_history:
        return Framing(False, _WINDOW)
    opening = protocol.opening(_TASK, _OBSERVATION, ("look",))
    head = _render(tokenizer, protocol, opening)
    said = f"{_THOUGHT}{_SAID}" if _thinks_on(head) else _SAID
    start = f"{head}{said}"
    turn = [*opening, Message("assistant", said)]
    text = _render(tokenizer, protocol, [*turn, _reply(protocol, _REPLY)])
    closed = _render(tokenizer, protocol, turn, more=False)
    if not text.startswith(start) or text.count(_REPLY) != 1:
        return Framing(False, _WHOLE)
    before, _, after = text[len(start) :].partition(_REPLY)
    end = closed[len(start) :].strip() if closed.startswith(start) else ""
    end = end if end in before else ""
    for trims in (False, True):
        framing = Framing(True, "", before, after, end, trims)
        if _same_text(tokenizer, protocol, framing):
            exact = _same_tokens(tokenizer, protocol, framing)
            seam = "" if exact else "; tokens beside what was sampled differ from a whole encoding"
            note = f"a reply is wrapped as {before!r} ... {after!r}; history is never rewritten"
            return Framing(True, f"{note}{seam}", before, after, end, trims, exact)
    return Framing(False, _WHOLE)


def _same_text(tokenizer: Tokenizer, protocol: PromptProtocol, framing: Framing) -> bool:
    """Text put together turn by turn is the template's own, over a conversation of many turns."""
    messages = protocol.opening(_TASK, _OBSERVATION, ("look",))
    text = _render(tokenizer, protocol, messages)
    for said, reply in zip(_sayings(tokenizer, protocol), cycle(_REPLIES), strict=False):
        messages += [Message("assistant", said), _reply(protocol, reply)]
        text += said + framing.tail(reply, ended=False)
        if text != _render(tokenizer, protocol, messages):
            return False
    return True


def _same_tokens(tokenizer: Tokenizer, protocol: PromptProtocol, framing: Framing) -> bool:
    """So are the tokens, whether the end of a turn was sampled or not."""
    text = _render(tokenizer, protocol, protocol.opening(_TASK, _OBSERVATION, ("look",)))
    tokens = tokenizer.encode(text)
    sayings = _sayings(tokenizer, protocol) * 2
    for number, (said, reply) in enumerate(zip(sayings, cycle(_REPLIES), strict=False)):
        ended = bool(framing.end) and number < len(sayings) // 2
        lead = framing.before.partition(framing.end)[0] + framing.end if ended else ""
        tail = framing.tail(reply, ended=ended)
        tokens += [*tokenizer.encode(said + lead), *tokenizer.encode(tail)]
        text += said + lead + tail
    return tokens == tokenizer.encode(text)


def _sayings(tokenizer: Tokenizer, protocol: PromptProtocol) -> list[str]:
    """What a model might say, with its thinking where the prompt leaves room for it."""
    plain = [*_SAYINGS, *map(protocol.render, _SAYINGS)]
    opening = protocol.opening(_TASK, _OBSERVATION, ("look",))
    head = _render(tokenizer, protocol, opening)
    if _thinks_on(head):
        return [f"{_THOUGHT}{saying}" for saying in plain]
    options = {**protocol.template_options, "enable_thinking": True}
    if (
        protocol.template_options
        and tokenizer.render(opening, protocol.tools, True, options) != head
    ):
        # The template turns thinking off, as the protocol asks: no reply holds any.
        return plain
    return [*plain, *(f"<think>\n{_THOUGHT}{saying}" for saying in plain)]


def _thinks_on(head: str) -> bool:
    """The prompt has opened a thought for the model to go on with."""
    return head.rstrip().endswith("<think>")


def _reply(protocol: PromptProtocol, text: str) -> Message:
    """A reply in the role that the protocol answers in."""
    result = EnvStep("", ())
    step = Step("", (), None, Completion((), (), "", "stop"), None, True, False, result)
    return Message(protocol.reply(step, 1).role, text)


def _render(
    tokenizer: Tokenizer,
    protocol: PromptProtocol,
    messages: Sequence[Message],
    *,
    more: bool = True,
) -> str:
    return tokenizer.render(messages, protocol.tools, more, protocol.template_options)
