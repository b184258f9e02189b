"""GiGPO and HGPO against the values of the code that their papers released (float32)."""

import itertools
import json
import re
from pathlib import Path

import pytest
from groups import flat, scored, step

from agentic_rl.advantage._steps import Relative, episode_term, step_returns
from agentic_rl.advantage.hierarchical import Hierarchical
from agentic_rl.advantage.step_level import StepLevel
from agentic_rl.types import ScoredGroup

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "step_advantages.json").read_text(encoding="utf-8")
)


def golden_group() -> ScoredGroup:
    rows = zip(GOLDEN["traj"], GOLDEN["obs"], GOLDEN["step_reward"], GOLDEN["invalid"], strict=True)
    members = [list(member) for _, member in itertools.groupby(rows, key=lambda row: row[0])]
    fine = GOLDEN["invalid_penalty"]
    return scored(
        [[step(obs) for _, obs, _, _ in member] for member in members],
        [[float(reward) for _, _, reward, _ in member] for member in members],
        [[0.0 - fine * invalid for *_, invalid in member] for member in members],
    )


def estimator(series: str) -> StepLevel | Hierarchical:
    normalize = "mean_std" if series.endswith("mean_std_norm") else "mean"
    if series.startswith("hgpo"):
        history, base, alpha = map(int, re.findall(r"_K(\d)_base(\d)_a(\d)", series)[0])
        return Hierarchical(
            history=history, base_group=bool(base), alpha=float(alpha), normalize=normalize
        )
    weights = {"episode": (1.0, 0.0), "step": (0.0, 1.0), "gigpo": (1.0, 1.0)}
    episode_weight, step_weight = weights[series.split("_")[0]]
    return StepLevel(
        normalize=normalize,
        baseline="trajectories" if "per_trajectory" in series else "steps",
        episode_weight=episode_weight,
        step_weight=step_weight,
    )


@pytest.mark.parametrize("series", GOLDEN["expected"])
def test_series_equals_the_released_code(series: str) -> None:
    assert flat(estimator(series)([golden_group()])) == pytest.approx(
        GOLDEN["expected"][series], abs=1e-5
    )


def test_discounted_returns_equal_the_released_code() -> None:
    assert step_returns(golden_group(), 0.95, "after") == pytest.approx(
        GOLDEN["discounted_return_minus_penalty"], abs=1e-5
    )


def test_penalty_inside_the_return_reaches_earlier_steps_and_the_episode() -> None:
    returns = step_returns(golden_group(), 0.95, "return")
    assert returns[3:6] == pytest.approx([-0.095, -0.1, 0.0])
    term = episode_term(golden_group(), Relative("mean", 1, 1e-6), "trajectories", "return", "zero")
    assert term[3:6] == pytest.approx([-5.075] * 3)


def test_weights_of_the_anonymous_code() -> None:
    rows = flat(Hierarchical(weights="level", normalize="mean")([golden_group()]))
    assert [rows[2], rows[11]] == pytest.approx([5.0208, -4.9792], abs=1e-4)
