"""The observation's text."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage.state_key import state_keys
from agentic_rl.types import Step


@state_keys.register("observation")
@dataclass(frozen=True)
class Observation:
    """Equal text is one state: every "Nothing happens.", and a shelf whatever is in the hand."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    def __call__(self, steps: Sequence[Step]) -> list[str]:
        return [step.observation for step in steps]
