"""A small policy over the replies that a prompt allows: exact log-probabilities, real learning.

A reply is one of the listed actions as a tool call, an action that nobody listed, or idle talk.
A token's probability is the share of the replies that it keeps possible, mixed with a trace of a
unigram distribution: every token has a probability, and every update leaves a trace everywhere.
"""

import re
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEATURES = 256
_TRACE = 1e-3
_CALL = (
    "<tool_call>\n<function=alfworld_step>\n<parameter=action>\n{}\n</parameter>\n</function>\n"
    "</tool_call>"
)
_DONE = re.compile(r"<parameter=action>\n(.*?)\n</parameter>")
_TASK = re.compile(r"Task: (.*)")
_LIST = "Available actions (copy one exactly):"
_IDLE = "I do not know what to do."
_NONE = np.array([], np.int64)
_START = {"idle": 2.0, "unlisted": 2.0}


def _slot(*parts: object) -> int:
    return zlib.crc32("\x1f".join(map(str, parts)).encode()) % FEATURES


@dataclass
class Replies:
    """The replies possible after one prompt."""

    tokens: list[tuple[int, ...]]
    features: Floats
    start: Floats

    @cached_property
    def _prefixes(self) -> dict[tuple[int, ...], NDArray[np.int64]]:
        found: dict[tuple[int, ...], list[int]] = {}
        for index, tokens in enumerate(self.tokens):
            for length in range(len(tokens)):
                found.setdefault(tokens[:length], []).append(index)
        return {prefix: np.array(indices, np.int64) for prefix, indices in found.items()}

    def active(self, prefix: tuple[int, ...]) -> NDArray[np.int64]:
        """The replies that begin so and go on."""
        return self._prefixes.get(prefix, _NONE)


class Reader:
    """What the model sees in a prompt: the task, the actions listed last, those already done."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = len(tokenizer)
        self.end: int = tokenizer.eos_token_id
        self.opening: list[int] = tokenizer.encode(
            "<|im_start|>assistant\n", add_special_tokens=False
        )
        self._known: dict[tuple[str, str], tuple[int, ...]] = {}

    def replies(self, prompt: list[int]) -> Replies:
        text = self.tokenizer.decode(prompt, skip_special_tokens=False)
        task = _TASK.search(text)
        wanted = set(re.findall(r"[a-z]+", task.group(1).lower())) if task else set()
        done = _DONE.findall(text)
        listed = text.rpartition(_LIST)[2].split("<|im_end|>")[0]
        actions = re.findall(r"^- (.+)$", listed, re.MULTILINE) if _LIST in text else []
        kinds = [*(("act", action) for action in actions), ("unlisted", "dance"), ("idle", "")]
        return Replies(
            tokens=[self._encode(kind, action) for kind, action in kinds],
            features=np.stack([_features(kind, action, wanted, done) for kind, action in kinds]),
            start=np.array([_START.get(kind, 0.0) for kind, _ in kinds]),
        )

    def regions(self, tokens: list[int]) -> list[tuple[int, int]]:
        """[start, end) of each assistant reply, the end token included."""
        found, size = [], len(self.opening)
        for at in range(len(tokens) - size + 1):
            if tokens[at : at + size] == self.opening:
                start = self._after_thought(tokens, at + size)
                end = start
                while end < len(tokens) and tokens[end] != self.end:
                    end += 1
                found.append((start, min(end + 1, len(tokens))))
        return found

    def _after_thought(self, tokens: list[int], at: int) -> int:
        thought = self.tokenizer.encode("<think>\n\n</think>\n\n", add_special_tokens=False)
        return at + len(thought) if tokens[at : at + len(thought)] == thought else at

    def _encode(self, kind: str, action: str) -> tuple[int, ...]:
        if (kind, action) not in self._known:
            text = _IDLE if kind == "idle" else _CALL.format(action)
            tokens = self.tokenizer.encode(text, add_special_tokens=False)
            self._known[kind, action] = (*tokens, self.end)
        return self._known[kind, action]


def _features(kind: str, action: str, wanted: set[str], done: list[str]) -> Floats:
    values = np.zeros(FEATURES)
    words = re.findall(r"[a-z]+", action)
    verb = words[0] if words else ""
    overlap = len(wanted & set(words[1:]))
    repeats = min(done.count(action), 2)
    for name in (
        (kind,),
        (verb,),
        ("overlap", overlap),
        (verb, "overlap", overlap),
        ("repeats", repeats),
        (verb, "repeats", repeats),
        ("last", bool(done) and done[-1] == action),
    ):
        values[_slot(*name)] += 1.0
    return values


@dataclass
class Policy:
    """The adapter: weights of the features and of the unigram trace, with Adam's moments."""

    vocabulary: int
    weights: Floats = field(default_factory=lambda: np.zeros(FEATURES))
    trace: Floats = field(init=False)
    grads: Floats = field(init=False)
    moments: Floats = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.trace = np.zeros(self.vocabulary)
        size = FEATURES + self.vocabulary
        self.grads = np.zeros(size)
        self.moments = np.zeros((2, size))

    def unigram(self) -> Floats:
        raised = np.exp(self.trace - self.trace.max())
        return np.asarray(raised / raised.sum())

    def shares(self, replies: Replies, active: NDArray[np.int64]) -> Floats:
        logits = replies.start[active] + replies.features[active] @ self.weights
        raised = np.exp(logits - logits.max())
        return np.asarray(raised / raised.sum())

    def distribution(self, replies: Replies, prefix: tuple[int, ...]) -> Floats:
        """Probabilities of the next token."""
        active = replies.active(prefix)
        unigram = self.unigram()
        if not len(active):
            return unigram
        mixed = _TRACE * unigram
        at = len(prefix)
        for index, share in zip(active, self.shares(replies, active), strict=True):
            mixed[replies.tokens[index][at]] += (1 - _TRACE) * share
        return mixed

    def logprob(
        self, replies: Replies | None, prefix: tuple[int, ...], token: int
    ) -> tuple[float, Floats]:
        """log p of a token, and its gradient by all parameters."""
        unigram = self.unigram()
        gradient = np.zeros(len(self.grads))
        active = replies.active(prefix) if replies is not None else np.array([], np.int64)
        if replies is None or not len(active):
            gradient[FEATURES:] = -unigram
            gradient[FEATURES + token] += 1.0
            return float(np.log(unigram[token])), gradient
        shares = self.shares(replies, active)
        at = len(prefix)
        hit = np.array([replies.tokens[i][at] == token for i in active])
        kept = float(shares[hit].sum())
        total = (1 - _TRACE) * kept + _TRACE * unigram[token]
        if kept > 0:
            chosen = (shares[hit] / kept) @ replies.features[active][hit]
            expected = shares @ replies.features[active]
            gradient[:FEATURES] = (1 - _TRACE) * kept / total * (chosen - expected)
        part = _TRACE * unigram[token] / total
        gradient[FEATURES:] = -part * unigram
        gradient[FEATURES + token] += part
        return float(np.log(total)), gradient

    def adam(self, settings: dict[str, float]) -> dict[str, float]:
        norm = float(np.sqrt((self.grads**2).sum()))
        clip = settings["grad_clip_norm"]
        grads = self.grads * (clip / norm if 0 < clip < norm else 1.0)
        self.steps += 1
        first, second = settings["beta1"], settings["beta2"]
        self.moments[0] = first * self.moments[0] + (1 - first) * grads
        self.moments[1] = second * self.moments[1] + (1 - second) * grads**2
        mean = self.moments[0] / (1 - first**self.steps)
        spread = np.sqrt(self.moments[1] / (1 - second**self.steps))
        change = settings["learning_rate"] * mean / (spread + max(settings["eps"], 1e-12))
        self.weights = self.weights - change[:FEATURES]
        self.trace = self.trace - change[FEATURES:]
        self.grads = np.zeros_like(self.grads)
        return {"grad_norm": norm, "learning_rate": settings["learning_rate"]}

    def snapshot(self, *, optimizer: bool) -> dict[str, Any]:
        kept: dict[str, Any] = {"weights": self.weights.copy(), "trace": self.trace.copy()}
        if optimizer:
            kept.update(moments=self.moments.copy(), steps=self.steps)
        return kept

    def load(self, kept: dict[str, Any], *, optimizer: bool) -> None:
        self.weights, self.trace = kept["weights"].copy(), kept["trace"].copy()
        if optimizer:
            self.moments, self.steps = kept["moments"].copy(), kept["steps"]


def token_loss(
    name: str, settings: dict[str, float], new: Floats, old: Floats, advantages: Floats
) -> tuple[Floats, Floats]:
    """Per token the loss and its derivative by the new log-probability."""
    ratio = np.exp(new - old)
    if name == "importance_sampling":
        return -ratio * advantages, -ratio * advantages
    low, high = (0.8, 1.2) if name == "ppo" else (0.0, 4.0)
    low = settings.get("clip_low_threshold", low)
    high = settings.get("clip_high_threshold", high)
    bounded = np.clip(ratio, low, high)
    if name == "cispo":
        return -bounded * advantages * new, -bounded * advantages
    free, held = ratio * advantages, bounded * advantages
    return -np.minimum(free, held), np.where(free <= held, -free, 0.0)
