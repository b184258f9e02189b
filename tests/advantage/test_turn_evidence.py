"""AgentOPSD's turn evidence and TEMPO's targets, by the worked values of their sources."""

import dataclasses
import math

import pytest
from groups import episodes, flat
from hypothesis import given
from hypothesis import strategies as st

from agentic_rl.advantage.group_normalized import GroupNormalized
from agentic_rl.advantage.tempo import tempo_critic, tempo_targets
from agentic_rl.advantage.turn_evidence import TurnEvidence, belief_changes, turn_evidence
from agentic_rl.errors import ConfigError, IntegrityError
from agentic_rl.types import ScoredGroup

EVIDENCE = (0.4, -0.2, 0.8)


def evident(returns: list[float], evidence: tuple[tuple[float, ...], ...]) -> ScoredGroup:
    """Won where the return is 1."""
    group = episodes(returns, steps=3, evidence=evidence)
    members = tuple(
        dataclasses.replace(member, won=value == 1.0)
        for member, value in zip(group.group.trajectories, returns, strict=True)
    )
    return dataclasses.replace(group, group=dataclasses.replace(group.group, trajectories=members))


def test_worked_beliefs() -> None:
    changes = belief_changes(0.75, EVIDENCE, TurnEvidence())
    assert changes == pytest.approx([0.0674, -0.0352, 0.1057], abs=1e-4)


def test_worked_advantages() -> None:
    group = evident([1.0, 0.0, 1.0, 1.0], (EVIDENCE, (0.0,) * 3, EVIDENCE, EVIDENCE))
    values = TurnEvidence()([group])[0]
    assert values[0] == pytest.approx([0.598, 0.5195, 0.6349], abs=1e-4)


def test_a_failures_blame_falls_on_the_turns_that_lowered_the_belief() -> None:
    first, second, third = turn_evidence(-1.0, 0.5, EVIDENCE, TurnEvidence())
    assert second < first < 0 and second < third < 0


@given(
    st.floats(-3, 3),
    st.floats(0, 1),
    st.lists(st.floats(-50, 50), min_size=1, max_size=20),
)
def test_a_turn_keeps_the_trajectorys_sign_and_nearly_its_size(
    advantage: float, success: float, evidence: list[float]
) -> None:
    values = turn_evidence(advantage, success, evidence, TurnEvidence())
    assert all(abs(value - advantage) <= 0.1 * abs(advantage) + 1e-12 for value in values)


def test_without_mix_it_is_the_normalized_group() -> None:
    group = evident([1.0, 0.0, 1.0, 1.0], (EVIDENCE,) * 4)
    plain = GroupNormalized(ddof=0, eps=1e-4)([group])
    assert flat(TurnEvidence(mix=0.0)([group])) == pytest.approx(flat(plain))


def test_extreme_evidence_stays_finite() -> None:
    values = turn_evidence(1.0, 1.0, [1e6, -1e6, 1e6], TurnEvidence())
    assert all(math.isfinite(value) for value in values)


def test_missing_evidence_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="a backend that can score"):
        TurnEvidence()([episodes([1.0, 0.0])])


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (((0.0,), (0.0, 0.0)), "branch 1: evidence of 2 turns for 1 steps"),
        (((0.0,), (math.nan,)), "branch 1, step 0: the evidence is nan"),
    ],
)
def test_bad_evidence_is_refused_by_name(
    evidence: tuple[tuple[float, ...], ...], message: str
) -> None:
    with pytest.raises(IntegrityError, match=message):
        TurnEvidence()([episodes([1.0, 0.0], evidence=evidence)])


def test_it_declares_its_need_and_refuses_odd_settings() -> None:
    assert TurnEvidence().needs == {"score"}
    for field in ({"mix": 1.5}, {"bound": -0.1}, {"eps": 0.0}):
        with pytest.raises(ConfigError, match=next(iter(field))):
            TurnEvidence(**field)


def test_tempo_targets() -> None:
    targets = tempo_targets([1, 0, 0, 0], [0, 0.6, 0.2, 0])
    assert targets.target == pytest.approx(0.45)
    assert targets.advantages == pytest.approx((0.55, 0.15, -0.25, -0.45))
    with pytest.raises(ValueError, match="needs a branch"):
        tempo_targets([], [])


def test_tempo_critic() -> None:
    rewards, advantages = tempo_critic(0.45, [0.5, 0.3, 0.9, None])
    assert rewards == pytest.approx((-0.05, -0.15, -0.45, -1))
    assert advantages == pytest.approx((0.3625, 0.2625, -0.0375, -0.5875))
    assert tempo_critic(0.45, [], largest=2.0) == ((), ())
