"""The shipped tokenizer, with a memory for lines: game text says the same lines again and again."""

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_rl.backend.tokenizer import ChatTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parents[1] / "linear_tokenizer"
_LINES = re.compile(r"[^\n]*\n+|[^\n]+")


class LineTokenizer(ChatTokenizer):
    """Encodes line by line: this tokenizer merges nothing across the end of a line."""

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        for line in _LINES.findall(text):
            tokens += self._encode_line(line)
        return tokens

    @cached_property
    def _encode_line(self) -> "Callable[[str], list[int]]":
        return lru_cache(maxsize=1 << 16)(super().encode)
