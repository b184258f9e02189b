"""The policy's moving parts: its weights, the replies it knows, and the choices it remembers."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend.linear.candidates import Candidate, candidates_of
from agentic_rl.backend.linear.choice import Choice, Memory, draw, masses, token_logprobs
from agentic_rl.backend.linear.features import Columns, FeatureTable, State
from agentic_rl.backend.linear.gradient import TrieBatch, spread
from agentic_rl.backend.linear.history import History
from agentic_rl.backend.linear.optimizer import Weights
from agentic_rl.backend.linear.replies import Replies
from agentic_rl.backend.linear.tokenizer import FOLDER, LineTokenizer
from agentic_rl.errors import BackendError
from agentic_rl.interfaces import Loss
from agentic_rl.training import Adam, UpdateMetrics, Usage
from agentic_rl.types import Batch, Completion, Demonstration, SamplingParams, Span, View


class Options(NamedTuple):
    """A turn's replies and the features of each."""

    replies: NDArray[np.int32]
    columns: Columns


class Learner:
    """Samples, scores and learns. It reads a prompt's view and nothing else of it."""

    def __init__(self, feature_bits: int) -> None:
        self.tokenizer = LineTokenizer.from_folder(FOLDER)
        self.table = FeatureTable(feature_bits)
        self.weights = Weights.zeros(self.table.size)
        self.memory = Memory()
        self.usage = Usage()
        self._replies: Replies | None = None

    def bind(self, render: Callable[[str], str]) -> None:
        self._replies = Replies(self.tokenizer, render)

    @property
    def replies(self) -> Replies:
        if self._replies is None:
            raise RuntimeError("bind(render) comes before the first sample")
        return self._replies

    def options(self, view: View) -> Options:
        history = History.of(view)
        candidates = candidates_of(view, history)
        ids = np.array(self.replies.ids(candidates), dtype=np.int32)
        columns = self.table.columns(State(history, view.actions), candidates)
        sayable = ids >= 0
        return Options(ids[sayable], columns[:, sayable])

    def scores(self, columns: Columns) -> NDArray[np.float64]:
        # Added feature by feature: the order is fixed, whatever the number of candidates.
        total = self.weights.theta[columns].sum(axis=0)
        return np.asarray(total, dtype=np.float64)

    def sample(self, view: View, n: int, params: SamplingParams) -> list[Completion]:
        options = self.options(view)
        mass = masses(self.scores(options.columns), params.temperature)
        return [
            self._complete(options, mass, draw(mass, params.seed, index), params)
            for index in range(n)
        ]

    def _complete(
        self, options: Options, mass: NDArray[np.float64], chosen: int, params: SamplingParams
    ) -> Completion:
        reply = int(options.replies[chosen])
        whole = self.replies.tokens[reply]
        tokens = whole[: params.max_tokens]
        overlaps = self.replies.overlaps(options.replies, reply)
        logprobs = token_logprobs(mass, overlaps, len(whole))[: len(tokens)]
        choice = Choice(options.columns, overlaps, tokens, len(whole), params.temperature)
        cut = len(tokens) < len(whole)
        return Completion(
            tokens=tokens,
            logprobs=tuple(logprobs.tolist()),
            text=self.replies.decode(tokens) if cut else self.replies.texts[reply],
            stop_reason="length" if cut else "stop",
            sample_id=self.memory.add(choice),
        )

    def score(self, tokens: Sequence[int], spans: Sequence[Span]) -> list[list[float]]:
        found = []
        for span in spans:
            choice = self.memory.get(span.sample_id)
            if tuple(tokens[span.start : span.end]) != choice.tokens:
                raise BackendError(
                    f"tokens {span.start} to {span.end} are not those of sample '{span.sample_id}'"
                )
            mass = masses(self.scores(choice.columns), choice.temperature)
            logprobs = token_logprobs(mass, choice.overlaps, choice.length)
            found.append(logprobs[: len(choice.tokens)].tolist())
        return found

    def update(self, batch: Batch, loss: Loss, optim: Adam) -> UpdateMetrics:
        """One step of Adam on the whole batch; a batch without data changes nothing."""
        if not batch.data:
            return UpdateMetrics(loss=0.0, grad_norm=0.0)
        spans = [(datum, span) for datum in batch.data for span in datum.spans]
        choices = [self.memory.get(span.sample_id) for _, span in spans]
        for (_, span), choice in zip(spans, choices, strict=True):
            if span.end - span.start != len(choice.tokens):
                raise BackendError(f"a span has not the length of sample '{span.sample_id}'")
        trie = TrieBatch.of(choices, self.weights.theta)
        old = np.concatenate([datum.old_logprobs[s.start : s.end] for datum, s in spans])
        credit = np.concatenate([datum.advantages[s.start : s.end] for datum, s in spans])
        by_datum = zip(batch.data, loss.token_weights(batch), strict=True)
        weight = np.concatenate(
            [weights[span.start : span.end] for datum, weights in by_datum for span in datum.spans]
        )
        value = loss.value_and_grad(trie.logprobs(), old, credit)
        gradient = trie.gradient(value.grads * weight, self.table.size)
        norm = self.weights.descend(gradient, optim)
        self.memory.drop([span.sample_id for _, span in spans])
        return UpdateMetrics(
            loss=float(np.sum(value.values * weight)),
            ratio_mean=float(np.mean(value.ratios)),
            ratio_max=float(np.max(value.ratios)),
            clip_fraction=float(np.mean(value.clipped)),
            entropy=trie.entropy(),
            grad_norm=norm,
        )

    def imitate(self, data: Sequence[Demonstration], optim: Adam, epochs: int) -> UpdateMetrics:
        """Cross-entropy on the demonstrated actions; Adam's moments do not outlive it."""
        turns = [self._demonstrated(turn) for turn in data]
        counts = np.array([columns.shape[1] for columns, _ in turns])
        starts = np.cumsum(counts) - counts
        owner = np.repeat(np.arange(len(turns)), counts)
        columns = np.concatenate([columns for columns, _ in turns], axis=1)
        right = starts + np.array([chosen for _, chosen in turns])
        loss = norm = 0.0
        for _ in range(epochs):
            scores = self.weights.theta[columns].sum(axis=0)
            mass = np.exp(scores - np.maximum.reduceat(scores, starts)[owner])
            share = mass / np.bincount(owner, weights=mass)[owner]
            loss = float(-np.mean(np.log(share[right])))
            share[right] -= 1.0
            gradient = spread(columns, share / len(turns), self.table.size)
            norm = self.weights.descend(gradient, optim)
        self.weights.forget_moments()
        return UpdateMetrics(loss=loss, grad_norm=norm)

    def _demonstrated(self, turn: Demonstration) -> tuple[Columns, int]:
        view = turn.prompt.view
        if turn.action not in view.actions:
            raise BackendError(f"the demonstrated action '{turn.action}' is not among those listed")
        options = self.options(view)
        [reply] = self.replies.ids([Candidate(turn.action, "listed")])
        return options.columns, int(np.flatnonzero(options.replies == reply)[0])
