"""Remaining plans against a full search, and against the walkthroughs."""

import random
from itertools import pairwise

import pytest

from agentic_rl.env.alfworld import load_game, open_world
from agentic_rl.env.progress import Progress, ProgressMeter, shortest_by_search
from agentic_rl.types import Task


def _along(task: Task) -> list[Progress]:
    world = open_world(load_game(task.game_file))
    meter, move = ProgressMeter(world.game), world.start
    found = [meter(move.node.state)]
    for command in task.walkthrough:
        move = world.step(move.node, command)
        found.append(meter(move.node.state))
    return found


def test_a_plan_gets_shorter_by_one_at_most_and_is_over_at_the_end(
    builtin_tasks: list[Task],
) -> None:
    for task in builtin_tasks:
        remaining = [progress.remaining for progress in _along(task)]
        assert None not in remaining
        lengths = [length for length in remaining if length is not None]
        assert lengths[0] <= len(task.walkthrough)
        assert lengths[-1] == 0 < min(lengths[:-1])
        assert all(abs(a - b) <= 1 for a, b in pairwise(lengths))


def test_all_parts_of_the_goal_hold_at_the_end_and_not_before(builtin_tasks: list[Task]) -> None:
    for task in builtin_tasks:
        *before, last = _along(task)
        assert all(holds for _, holds in last.parts)
        assert len({tuple(name for name, _ in progress.parts) for progress in before}) == 1


def test_every_kind_of_goal_is_read(builtin_tasks: list[Task]) -> None:
    for task in builtin_tasks:
        goal = ProgressMeter(load_game(task.game_file)).goal
        assert goal is not None
        assert goal.thing.removesuffix("type") in task.task_id.lower()


def test_another_domain_has_no_plan(lighthouse_task: Task) -> None:
    game = load_game(lighthouse_task.game_file)
    assert ProgressMeter(game)(game.start) == Progress((("the goal", False),), None)


def _check_against_search(tasks: list[Task], states: int) -> int:
    compared = 0
    for task in tasks:
        world = open_world(load_game(task.game_file))
        meter, rng = ProgressMeter(world.game), random.Random(task.digest)
        for _ in range(states):
            node = world.start.node
            for command in task.walkthrough[: rng.randrange(len(task.walkthrough))]:
                node = world.step(node, command).node
            for _ in range(rng.randrange(4)):
                after = world.step(node, rng.choice(node.commands)).node
                node = node if after.won else after
            remaining = meter(node.state).remaining
            assert remaining is not None
            if remaining <= 4:
                found = shortest_by_search(world.game, node.state, remaining, 4_000)
                assert found in (None, remaining)
                compared += found is not None
    return compared


def test_plans_equal_a_full_search(builtin_tasks: list[Task]) -> None:
    assert _check_against_search(builtin_tasks, states=4) >= 12


@pytest.mark.real
@pytest.mark.slow
def test_plans_equal_a_full_search_on_published_games(real_tasks: list[Task]) -> None:
    assert _check_against_search(real_tasks, states=4) >= 12
