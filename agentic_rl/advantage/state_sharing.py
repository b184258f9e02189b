"""How well a state key fits: how many steps share a state, and how often one key covers two."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from agentic_rl.advantage.state_key import StateKey, build
from agentic_rl.types import ScoredGroup


@dataclass(frozen=True, slots=True)
class StateSharing:
    """Both are shares of 1; None where there is nothing to count.

    `shared_rate`: of all steps, those whose key another step of the group has as well.
    `aliased_rate`: of those, the ones whose key covers states that the engine tells apart; None as
    well where the environment gives no digests.
    """

    shared_rate: float | None
    aliased_rate: float | None


def state_sharing(
    batch: Sequence[ScoredGroup], key: StateKey | str = "observation"
) -> StateSharing:
    """Counts over the whole batch; a state belongs to its group."""
    state_key = build(key) if isinstance(key, str) else key
    total = shared = aliased = 0
    known = True
    for group in batch:
        steps = [step for trajectory in group.group.trajectories for step in trajectory.steps]
        members: dict[Hashable, list[str | None]] = {}
        for step, label in zip(steps, state_key(steps), strict=True):
            members.setdefault(label, []).append(step.state.digest if step.state else None)
        total += len(steps)
        for digests in members.values():
            if len(digests) > 1:
                shared += len(digests)
                aliased += len(digests) if len(set(digests)) > 1 else 0
                known = known and None not in digests
    return StateSharing(
        shared / total if total else None, aliased / shared if shared and known else None
    )
