"""TEMPO's targets: branches of one state, each as good as what it earned and what lies ahead."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage._groups import centred, mean


@dataclass(frozen=True, slots=True)
class TempoTargets:
    """`target` is what the start state is worth; `advantages[n]` belongs to branch n's segment."""

    target: float
    advantages: tuple[float, ...]


def tempo_targets(rewards: Sequence[float], values: Sequence[float]) -> TempoTargets:
    """R_n = reward of segment n + value of its end; target = mean(R), A_n = R_n - target

    The value of an end that is terminal is 0.
    """
    returns = [reward + value for reward, value in zip(rewards, values, strict=True)]
    if not returns:
        raise ValueError("tempo_targets needs a branch")
    return TempoTargets(mean(returns), tuple(centred(returns)))


def tempo_critic(
    target: float, answers: Sequence[float | None], largest: float = 1.0
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Rewards of the critic's answers, -|answer - target| / largest, and those less their mean.

    An answer that could not be read (None) earns -1.
    """
    rewards = [
        -1.0 if answer is None else 0.0 - abs(answer - target) / largest for answer in answers
    ]
    return tuple(rewards), tuple(centred(rewards))
