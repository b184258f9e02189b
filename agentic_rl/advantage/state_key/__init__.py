"""State keys: what makes two steps of a group the same state."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from agentic_rl.errors import ConfigError
from agentic_rl.registry import Registry
from agentic_rl.types import StateFacts, Step


@runtime_checkable
class StateKey(Protocol):
    """One label a step, equal where the states count as one. `needs` is that of an estimator.

    It is given all steps of a group at once, trajectory by trajectory, before any acted.
    """

    @property
    def needs(self) -> frozenset[str]: ...

    def __call__(self, steps: Sequence[Step]) -> Sequence[Hashable]: ...


state_keys: Registry[StateKey] = Registry("state_key", __name__)


def build(spec: str | Mapping[str, Any]) -> StateKey:
    """From a name, or `{name: ..., **fields}` where a key has options."""
    return state_keys.build({"name": spec} if isinstance(spec, str) else spec)


def facts(step: Step, key: str) -> StateFacts:
    """What the engine knows of the state; ConfigError where it keeps it to itself."""
    if step.state is None:
        raise ConfigError(
            f"state_key={key} needs the game engine's facts, which this environment does not give:"
            " use env.engine=compiled, or state_key=observation"
        )
    return step.state
