"""Prompts as token sequences that only ever grow: what was sampled is never encoded again.

`probe` finds once, for a tokenizer's chat template, the text between an assistant's content and a
reply's, and the text after the reply. Where the template proves to rewrite history (it drops
earlier thinking, moves the tools ...), every prompt is rendered whole instead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from agentic_rl.interfaces import PromptProtocol, Tokenizer
from agentic_rl.types import Message, Role, Step, Task

_ASSISTANT = "assistantcontent"
_REPLY = "replycontent"


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
    """How the chat template wraps a reply; `incremental` where history is never rewritten."""

    incremental: bool
    before_reply: str
    after_reply: str
    note: str


class Codec:
    """A tokenizer, a protocol and what the probe found: what turns messages into tokens."""

    def __init__(self, tokenizer: Tokenizer, protocol: PromptProtocol) -> None:
        self.tokenizer = tokenizer
        self.protocol = protocol
        self.framing = probe(tokenizer, protocol)
        self._closing = len(tokenizer.encode(self.framing.before_reply))

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """A whole prompt, up to where the assistant begins."""
        return self.tokenizer.encode(_prompt_text(self.tokenizer, self.protocol, messages))

    def encode_reply(self, completion: Sequence[int], reply: Message) -> list[int]:
        """What follows a completion: the assistant's closing, the reply, and the next opening.

        Closing tokens that the completion already ends with are not repeated.
        """
        frame = self.framing
        tail = self.tokenizer.encode(f"{frame.before_reply}{reply.content}{frame.after_reply}")
        for overlap in range(min(self._closing, len(completion)), 0, -1):
            if list(completion[-overlap:]) == tail[:overlap]:
                return tail[overlap:]
        return tail


class Conversation:
    """The tokens of one trajectory; a new segment begins where a prompt rewrites the last."""

    def __init__(self, codec: Codec, task: Task) -> None:
        self._codec = codec
        self._task = task
        self.segments: list[list[int]] = []

    def open(self, messages: Sequence[Message]) -> TokenPrefix:
        self.segments.append(self._codec.encode_prompt(messages))
        return self.prompt()

    def prompt(self) -> TokenPrefix:
        return TokenPrefix(self.segments[-1], len(self.segments[-1]))

    def fork(self) -> "Conversation":
        """Another conversation with the same beginning."""
        other = Conversation(self._codec, self._task)
        other.segments = [list(segment) for segment in self.segments]
        return other

    def add_completion(self, tokens: Sequence[int]) -> tuple[int, int, int]:
        """Where it lies: (segment, prompt_end, completion_end)."""
        segment = self.segments[-1]
        start = len(segment)
        segment.extend(tokens)
        return len(self.segments) - 1, start, len(segment)

    def add_reply(self, steps: Sequence[Step]) -> TokenPrefix:
        """The prompt of the next turn, `steps` being all turns so far."""
        last = steps[-1]
        protocol = self._codec.protocol
        if protocol.keeps_full_history and self._codec.framing.incremental:
            reply = protocol.reply(last, len(steps))
            self.segments[-1] += self._codec.encode_reply(last.completion.tokens, reply)
            return self.prompt()
        result = last.result
        messages = protocol.window(self._task, steps, result.observation, result.admissible_actions)
        tokens = self._codec.encode_prompt(messages)
        segment = self.segments[-1]
        if tokens[: len(segment)] == segment:
            segment += tokens[len(segment) :]
        else:
            self.segments.append(tokens)
        return self.prompt()


def probe(tokenizer: Tokenizer, protocol: PromptProtocol) -> Framing:
    """Finds the wrapping of a reply and proves it against full renderings of conversations."""
    if not protocol.keeps_full_history:
        return Framing(False, "", "", "a window protocol: every turn is its own segment")
    role = _reply_role(protocol)
    opening = [Message("system", "s"), Message("user", "u")]
    head = _prompt_text(tokenizer, protocol, opening)
    turn = [Message("assistant", _ASSISTANT), Message(role, _REPLY)]
    text = _prompt_text(tokenizer, protocol, [*opening, *turn])
    start = f"{head}{_ASSISTANT}"
    rewritten = Framing(
        False, "", "", "the chat template rewrites history: prompts are rendered whole every turn"
    )
    if not text.startswith(start) or text.count(_REPLY) != 1:
        return rewritten
    before, _, after = text[len(start) :].partition(_REPLY)
    note = f"a reply is wrapped as {before!r} ... {after!r}; history is never rewritten"
    framing = Framing(True, before, after, note)
    return framing if _proved(tokenizer, protocol, framing, role) else rewritten


def _proved(tokenizer: Tokenizer, protocol: PromptProtocol, framing: Framing, role: Role) -> bool:
    """Incremental and full encodings agree over conversations of several turns."""
    for replies in (("one",), ("one", "two: a\n- b"), ("x" * 40, "b\n\nc", "<d> & 'e'")):
        messages = [Message("system", "s"), Message("user", "u\nv")]
        tokens = tokenizer.encode(_prompt_text(tokenizer, protocol, messages))
        for number, reply in enumerate(replies):
            said = protocol.render(f"go to desk {number}")
            messages += [Message("assistant", said), Message(role, reply)]
            tail = f"{framing.before_reply}{reply}{framing.after_reply}"
            tokens += [*tokenizer.encode(said), *tokenizer.encode(tail)]
            if tokens != tokenizer.encode(_prompt_text(tokenizer, protocol, messages)):
                return False
    return True


def _prompt_text(
    tokenizer: Tokenizer, protocol: PromptProtocol, messages: Sequence[Message]
) -> str:
    return tokenizer.render(messages, protocol.tools, True, protocol.template_options)


def _reply_role(protocol: PromptProtocol) -> Role:
    return "tool" if protocol.tools else "user"
