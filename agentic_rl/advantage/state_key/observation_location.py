"""The observation's text and the place it is seen from."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage.state_key import facts, state_keys
from agentic_rl.types import Step


@state_keys.register("observation_location")
@dataclass(frozen=True)
class ObservationLocation:
    """Tells apart the same words in other places, such as "Nothing happens."."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"state"})

    def __call__(self, steps: Sequence[Step]) -> list[tuple[str, str]]:
        return [(step.observation, facts(step, "observation_location").location) for step in steps]
