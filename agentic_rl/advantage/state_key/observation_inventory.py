"""The observation's text and what is carried."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage.state_key import facts, state_keys
from agentic_rl.types import Step


@state_keys.register("observation_inventory")
@dataclass(frozen=True)
class ObservationInventory:
    """Tells apart the same sight with other things in the hand."""

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"state"})

    def __call__(self, steps: Sequence[Step]) -> list[tuple[str, tuple[str, ...]]]:
        return [
            (step.observation, facts(step, "observation_inventory").inventory) for step in steps
        ]
