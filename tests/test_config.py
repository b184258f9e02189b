"""Values that no run could use are refused before anything is spent."""

import math
from typing import Any

import pytest

from agentic_rl.config import Experiment
from agentic_rl.errors import ConfigError


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"lr": math.inf}, "lr=inf is no finite number"),
        ({"lr": math.nan}, "lr=nan"),
        ({"sampling": {"temperature": math.inf}}, "sampling.temperature=inf"),
        ({"evaluation": {"temperature": math.inf}}, "evaluation.temperature=inf"),
        ({"rollout": {"timeout": 0}}, "rollout.timeout=0.0 is not above 0"),
        ({"rollout": {"timeout": math.nan}}, "rollout.timeout=nan"),
        ({"budget": {"max_cost": -1}}, "budget.max_cost=-1.0 is below 0"),
        ({"command": "trian"}, "command=trian is not one of train, eval. Did you mean 'train'"),
        ({"seed": 2**63}, "seed=9223372036854775808 does not fit into 64 bits"),
        ({"evaluation": {"seed": -(2**63) - 1}}, "evaluation.seed=-9223372036854775809"),
    ],
)
def test_a_value_that_no_run_could_use(content: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace(".", r"\.")):
        Experiment.from_cfg(content)


def test_the_bounds_themselves_are_fine() -> None:
    content = {"seed": 2**63 - 1, "lr": 0.0, "rollout": {"timeout": 0.01}}
    experiment = Experiment.from_cfg(content)
    assert (experiment.seed, experiment.lr) == (2**63 - 1, 0.0)
