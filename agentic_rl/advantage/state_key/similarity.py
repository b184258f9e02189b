"""Observations that nearly agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentic_rl.advantage.state_key import state_keys
from agentic_rl.errors import ConfigError
from agentic_rl.types import Step


@state_keys.register("similarity")
@dataclass(frozen=True)
class Similarity:
    """A text joins the first cluster whose first text it matches; otherwise it opens one.

    Greedy, so it depends on the order: trajectory by trajectory, step by step.
    """

    threshold: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigError(f"threshold={self.threshold} is not above 0 and at most 1")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, steps: Sequence[Step]) -> list[int]:
        known: dict[str, int] = {}
        clusters: list[SequenceMatcher[str]] = []
        for step in steps:
            if step.observation not in known:
                known[step.observation] = self._cluster(step.observation, clusters)
        return [known[step.observation] for step in steps]

    def _cluster(self, text: str, clusters: list[SequenceMatcher[str]]) -> int:
        for number, matcher in enumerate(clusters):
            matcher.set_seq1(text)
            # Each is an upper bound of the next, and much cheaper.
            if (
                matcher.real_quick_ratio() >= self.threshold
                and matcher.quick_ratio() >= self.threshold
                and matcher.ratio() >= self.threshold
            ):
                return number
        # A matcher remembers what it worked out about its second text.
        clusters.append(SequenceMatcher(None, "", text))
        return len(clusters) - 1
