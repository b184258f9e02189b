"""The replies a policy can give, as text and tokens; none is the beginning of another."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend.linear.candidates import Candidate
from agentic_rl.backend.tokenizer import ChatTokenizer

END = "<|im_end|>"
_NO_TOKEN = -1


class Replies:
    """Words candidates by the protocol's `render` and keeps their tokens, each reply once.

    Every reply ends with the end-of-turn token and holds it nowhere else, so no reply is a proper
    prefix of another.
    """

    def __init__(self, tokenizer: ChatTokenizer, render: Callable[[str], str]) -> None:
        self._tokenizer = tokenizer
        self._render = render
        self._end = tokenizer.token_id(END)
        self._by_candidate: dict[Candidate, int] = {}
        self._by_text: dict[str, int] = {}
        self._matrix = np.full((256, 32), _NO_TOKEN, dtype=np.int32)
        self.texts: list[str] = []
        self.tokens: list[tuple[int, ...]] = []

    def ids(self, candidates: list[Candidate]) -> list[int]:
        """One number a candidate; -1 for one that cannot be told apart or said at all."""
        found: list[int] = []
        known = self._by_candidate
        for candidate in candidates:
            number = known.get(candidate)
            if number is None:
                number = known[candidate] = self._intern(candidate)
            found.append(-1 if candidate.form != "listed" and number in found else number)
        return found

    def overlaps(self, ids: NDArray[np.int32], chosen: int) -> NDArray[np.int32]:
        """How many leading tokens each reply shares with the chosen one: all with itself."""
        length = len(self.tokens[chosen])
        matrix = self._matrix[ids, :length]
        shared = (matrix != self._matrix[chosen, :length]).argmax(axis=1).astype(np.int32)
        shared[ids == chosen] = length
        return np.asarray(shared, dtype=np.int32)

    def decode(self, tokens: tuple[int, ...]) -> str:
        return self._tokenizer.decode(tokens)

    def _intern(self, candidate: Candidate) -> int:
        said = candidate.form in ("listed", "unlisted")
        text = self._render(candidate.command) if said else candidate.command
        if text in self._by_text:
            return self._by_text[text]
        tokens = (*self._tokenizer.encode(text), self._end)
        if tokens.index(self._end) < len(tokens) - 1:
            return -1
        self._by_text[text] = len(self.texts)
        self.texts.append(text)
        self.tokens.append(tokens)
        self._store(tokens)
        return len(self.texts) - 1

    def _store(self, tokens: tuple[int, ...]) -> None:
        rows, columns = self._matrix.shape
        if len(self.tokens) > rows or len(tokens) > columns:
            wider = max(columns, 2 ** (len(tokens) - 1).bit_length())
            larger = np.full((2 * rows, wider), _NO_TOKEN, dtype=np.int32)
            larger[:rows, :columns] = self._matrix
            self._matrix = larger
        self._matrix[len(self.tokens) - 1, : len(tokens)] = tokens
