"""AgentOPSD: a trajectory's advantage, shifted to the turns that moved the belief in success."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rl.advantage import advantages
from agentic_rl.advantage._groups import centred, checked, deviation
from agentic_rl.errors import ConfigError, IntegrityError
from agentic_rl.types import Advantages, ScoredGroup


@advantages.register("turn_evidence")
@dataclass(frozen=True)
class TurnEvidence:
    """A_t = A * ((1 - mix) + mix * w_t), with A = (r - mean(r)) / (std(r) + eps)

    e_t = what a teacher who knows more thinks of the turn's tokens, less what the policy thought
    c_t = gamma * c_{t-1} + e_t; belief b_t = sigmoid(logit(b_0) + c_t), b_0 the group's share won
    w_t = 1 + bound * z_t, kept in 1 - bound .. 1 + bound
    z_t = (d_t - mean(d)) / (std(d) + eps) over the trajectory, d_t = sign(A) * (b_t - b_{t-1})
    """

    gamma: float = 0.95
    bound: float = 0.2
    mix: float = 0.5
    eps: float = 1e-4
    skill: str = ""

    def __post_init__(self) -> None:
        for name, value in (("bound", self.bound), ("mix", self.mix)):
            if not 0 <= value <= 1:
                raise ConfigError(f"{name}={value} is not between 0 and 1")
        if not 0 < self.eps < 0.5:
            raise ConfigError(f"eps={self.eps} is not above 0 and below 0.5")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"score"})

    def __call__(self, batch: Sequence[ScoredGroup]) -> Advantages:
        """Statistics are over the trajectories that are there; dropped ones count in nothing."""
        checked(batch)
        return [self._group(group) for group in batch]

    def _group(self, group: ScoredGroup) -> list[list[float]]:
        members = group.group.trajectories
        if not members:
            return []
        scale = deviation(group.returns, 0) + self.eps
        won = sum(trajectory.won for trajectory in members) / len(members)
        return [
            turn_evidence(value / scale, won, evidence, self)
            for value, evidence in zip(centred(group.returns), _evidence(group), strict=True)
        ]


def turn_evidence(
    advantage: float, success: float, evidence: Sequence[float], rule: TurnEvidence
) -> list[float]:
    """A trajectory's advantage, one value a turn; `success` is the group's share won."""
    sign = math.copysign(1.0, advantage) if advantage else 0.0
    credit = [sign * change for change in belief_changes(success, evidence, rule)]
    scale = deviation(credit, 0) + rule.eps if credit else 1.0
    weights = (1 + rule.bound * value / scale for value in centred(credit))
    low, high = 1 - rule.bound, 1 + rule.bound
    return [
        advantage * ((1 - rule.mix) + rule.mix * min(max(weight, low), high)) for weight in weights
    ]


def belief_changes(success: float, evidence: Sequence[float], rule: TurnEvidence) -> list[float]:
    """How far each turn moved the belief in success."""
    belief = min(max(success, rule.eps), 1 - rule.eps)
    prior = math.log(belief / (1 - belief))
    gathered = 0.0
    changes = []
    for value in evidence:
        gathered = rule.gamma * gathered + value
        following = _sigmoid(prior + gathered)
        changes.append(following - belief)
        belief = following
    return changes


def _sigmoid(value: float) -> float:
    # Without overflow for either sign.
    small = math.exp(-abs(value))
    return 1 / (1 + small) if value >= 0 else small / (1 + small)


def _evidence(group: ScoredGroup) -> Sequence[Sequence[float]]:
    """Refused, by name, where it is missing, misaligned or no number."""
    if group.evidence is None:
        raise ConfigError(
            "advantage=turn_evidence needs evidence: use a backend that can score, and give the"
            " teacher's text as advantage.skill"
        )
    for trajectory, evidence in zip(group.group.trajectories, group.evidence, strict=True):
        where = f"task {trajectory.task.task_id}, branch {trajectory.branch}"
        if len(evidence) != len(trajectory.steps):
            steps = len(trajectory.steps)
            raise IntegrityError(f"{where}: evidence of {len(evidence)} turns for {steps} steps")
        for step, value in enumerate(evidence):
            if not math.isfinite(value):
                raise IntegrityError(f"{where}, step {step}: the evidence is {value}")
    return group.evidence
