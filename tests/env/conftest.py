"""Games to play: generated ones everywhere, published ones where they are."""

import sys
from pathlib import Path

import pytest

from agentic_rl.games.builtin import BuiltinGames
from agentic_rl.types import Task

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def builtin_tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Task]:
    """Two generated games of each type."""
    root = tmp_path_factory.mktemp("games")
    tasks = BuiltinGames(train=36, root=str(root)).load("train").tasks
    kinds = sorted({task.task_type for task in tasks})
    return [task for kind in kinds for task in [t for t in tasks if t.task_type == kind][:2]]


@pytest.fixture(scope="session")
def real_tasks(alfworld_data: Path) -> list[Task]:
    """The published games of valid_seen, two of each type."""
    from agentic_rl.games.alfworld import ALFWorldGames

    tasks = ALFWorldGames(root=str(alfworld_data)).load("valid_seen").tasks
    kinds = sorted({task.task_type for task in tasks})
    return [task for kind in kinds for task in [t for t in tasks if t.task_type == kind][:2]]


@pytest.fixture
def lighthouse_task(tmp_path: Path) -> Task:
    """One game of a domain that is not ALFWorld's."""
    import lighthouse

    path = tmp_path / "game.tw-pddl"
    path.write_bytes(lighthouse.game())
    return Task("lighthouse", "train", "lighthouse", str(path), "")
