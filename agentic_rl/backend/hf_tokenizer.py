"""A transformers tokenizer as ours: text first, tokens second, never special tokens of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentic_rl.errors import BackendError
from agentic_rl.types import Message


class HfTokenizer:
    """Wraps what a service's SDK or transformers loads."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.end: int | None = inner.eos_token_id

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        options: Mapping[str, Any],
    ) -> str:
        try:
            text = self._inner.apply_chat_template(
                [{"role": message.role, "content": message.content} for message in messages],
                tools=[dict(tool) for tool in tools] or None,
                add_generation_prompt=add_generation_prompt,
                tokenize=False,
                **options,
            )
        except ValueError as error:
            raise BackendError(f"the model's chat template cannot be used: {error}") from error
        return str(text)

    def encode(self, text: str) -> list[int]:
        return list(self._inner.encode(text, add_special_tokens=False))

    def decode(self, tokens: Sequence[int]) -> str:
        return str(
            self._inner.decode(
                list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    def text_of(self, completion: Sequence[int]) -> str:
        """A completion's text, without the end token that closes it."""
        end = len(completion)
        if end and completion[-1] == self.end:
            end -= 1
        return self.decode(completion[:end])
