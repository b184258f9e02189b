"""An update never waits for its estimator."""

import random
import time

import pytest
from groups import scored, step

from agentic_rl.advantage import advantages
from agentic_rl.types import ScoredGroup, StateFacts


def batch(groups: int, size: int, length: int) -> list[ScoredGroup]:
    """A walk through forty places, so that steps meet as often as in real games."""
    chance = random.Random(0)
    made = []
    for _ in range(groups):
        facts = [StateFacts(str(place), (), str(place)) for place in range(40)]
        texts = [f"On the shelf {place}, you see a mug {place}." * 3 for place in range(40)]
        places = [[chance.randrange(40) for _ in range(length)] for _ in range(size)]
        steps = [[step(texts[p], facts[p], tokens=12) for p in row] for row in places]
        task = [[0.0] * (length - 1) + [float(chance.random() < 0.5)] for _ in range(size)]
        fines = [[-0.1 * (chance.random() < 0.2) for _ in range(length)] for _ in range(size)]
        evidence = tuple(tuple(chance.gauss(0, 1) for _ in range(length)) for _ in range(size))
        made.append(scored(steps, task, fines, evidence=evidence))
    return made


def fastest(estimator: object, data: list[ScoredGroup], tries: int = 7) -> float:
    times = []
    for _ in range(tries):
        start = time.process_time()
        estimator(data)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize("name", advantages.names())
def test_64_trajectories_of_50_steps_take_20_milliseconds_at_most(name: str) -> None:
    assert fastest(advantages.get(name)(), batch(8, 8, 50)) <= 0.02


@pytest.mark.slow
def test_the_similarity_key_stays_below_a_second() -> None:
    estimator = advantages.get("step_level")(state_key="similarity")
    assert fastest(estimator, batch(8, 8, 50), tries=2) <= 1.0
