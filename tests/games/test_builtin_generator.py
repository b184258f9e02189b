"""The generator: the same bytes everywhere, rooms and tasks kept apart, every game solvable."""

import hashlib
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from game_simulator import Simulator, replay

from agentic_rl.games.builtin.difficulty import DIFFICULTIES
from agentic_rl.games.builtin.generator import SPLITS, Game, Generator
from agentic_rl.games.builtin.shipped import Shipped
from agentic_rl.games.builtin.tables import KEPT_AWAY, STATIONS, UNSEEN_ROOMS
from agentic_rl.games.index import GAME_FILE, TRAJ_FILE
from agentic_rl.types import TASK_TYPES

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "builtin_games.json").read_text())


@pytest.fixture(scope="module")
def shipped() -> Shipped:
    return Shipped.load()


def sha(game: Game) -> str:
    content = b"\0".join((game.trial.encode(), game.game_file, game.traj_file))
    return hashlib.sha256(content).hexdigest()


def write(game: Game, folder: Path) -> Path:
    trial = folder / game.trial
    trial.mkdir(parents=True)
    (trial / GAME_FILE).write_bytes(game.game_file)
    (trial / TRAJ_FILE).write_bytes(game.traj_file)
    return trial


@pytest.mark.parametrize(("difficulty", "split"), list(product(DIFFICULTIES, SPLITS)))
def test_games_are_the_golden_ones(shipped: Shipped, difficulty: str, split: str) -> None:
    generator = Generator(shipped, 0, DIFFICULTIES[difficulty])
    found = [sha(generator.game(split, index)) for index in range(6)]
    assert found == GOLDEN["games"][f"{difficulty}/{split}"]


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_the_hash_seed_changes_nothing(hash_seed: str) -> None:
    code = (
        "import hashlib;"
        "from agentic_rl.games.builtin.generator import Generator;"
        "from agentic_rl.games.builtin.shipped import Shipped;"
        "s = Shipped.load(); g = Generator(s);"
        "print(s.fingerprint, hashlib.sha256(g.game('train', 4).game_file).hexdigest())"
    )
    env = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [GOLDEN["fingerprint"], GOLDEN["train_4"]]


def test_a_game_depends_on_its_number_alone(shipped: Shipped) -> None:
    forwards, backwards = Generator(shipped, 5), Generator(shipped, 5)
    there = [forwards.game("train", index) for index in range(8)]
    back = [backwards.game("train", index) for index in reversed(range(8))]
    assert there == back[::-1]
    assert Generator(shipped, 6).game("train", 0) != there[0]


@pytest.mark.parametrize(("difficulty", "split"), list(product(DIFFICULTIES, SPLITS)))
def test_every_walkthrough_wins_with_its_last_command(
    shipped: Shipped, difficulty: str, split: str, tmp_path: Path
) -> None:
    generator = Generator(shipped, 7, DIFFICULTIES[difficulty])
    for index in range(24):
        replay(write(generator.game(split, index), tmp_path))


def test_rooms_and_tasks_are_kept_apart(shipped: Shipped) -> None:
    generator = Generator(shipped, 1)
    folders = {
        split: {generator.game(split, index).trial.split("/")[0] for index in range(60)}
        for split in SPLITS
    }
    rooms = {split: {int(name.rsplit("-", 1)[1]) for name in folders[split]} for split in SPLITS}
    assert rooms["valid_unseen"] <= set(UNSEEN_ROOMS)
    assert (rooms["train"] | rooms["valid_seen"]).isdisjoint(KEPT_AWAY)
    assert folders["train"].isdisjoint(folders["valid_seen"])


def test_task_types_take_turns(shipped: Shipped) -> None:
    generator = Generator(shipped)
    found = [generator.game("valid_seen", index).trial.split("-")[0] for index in range(12)]
    assert found == list(TASK_TYPES) * 2


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_nothing_wanted_waits_at_its_own_station(
    shipped: Shipped, difficulty: str, tmp_path: Path
) -> None:
    generator = Generator(shipped, 3, DIFFICULTIES[difficulty])
    for index in range(24):
        game = Simulator(write(generator.game("train", index), tmp_path))
        task, params = game.traj["task_type"], game.traj["pddl_params"]
        wanted = f"{params['object_target']}type".lower()
        targets = [thing for thing, kind in game.facts["objecttype"] if kind == wanted]
        lies_in = {game.kind[where] for thing in targets for where in game.inside(thing)}
        if task in STATIONS:
            assert f"{STATIONS[task][1]}type".lower() not in lies_in
        elif task != "look_at_obj_in_light":
            assert f"{params['parent_target']}type".lower() not in lies_in
        assert game.at not in game.place.values()


def test_difficulties_differ_as_they_say(shipped: Shipped, tmp_path: Path) -> None:
    sizes = {}
    for name, difficulty in DIFFICULTIES.items():
        generator = Generator(shipped, 2, difficulty)
        games = [
            Simulator(write(generator.game("train", index), tmp_path / name)) for index in range(18)
        ]
        sizes[name] = [len(game.place) for game in games]
        for game in games:
            wanted = f"{game.traj['pddl_params']['object_target']}type".lower()
            copies = sum(kind == wanted for _, kind in game.facts["objecttype"])
            fewest, most = difficulty.copies
            two = game.traj["task_type"] == "pick_two_obj_and_place"
            assert (max(2, fewest) if two else fewest) <= copies <= (max(2, most) if two else most)
    assert set(sizes["tiny"]) == {4}
    assert max(sizes["easy"]) == 8
    assert max(sizes["normal"]) > 20


def test_the_files_say_that_they_are_generated(shipped: Shipped) -> None:
    game = Generator(shipped, 0, DIFFICULTIES["hard"]).game("train", 1)
    traj = json.loads(game.traj_file)
    assert traj["generated"] == {"by": "agentic-rl", "version": "1", "difficulty": "hard"}
    assert traj["task_id"] == game.trial.split("/")[1]
    assert traj["turk_annotations"]["anns"][0]["task_desc"].lower() in (
        json.loads(game.game_file)["grammar"].lower()
    )


def test_alfworld_is_read_but_never_imported(tmp_path: Path) -> None:
    code = (
        "import sys;"
        "from agentic_rl.games import games_sources;"
        "games_sources.build({'name': 'builtin', 'train': 2}).load('train');"
        "print([name for name in sys.modules if name.startswith(('alfworld', 'textworld'))])"
    )
    env = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    env |= {"HOME": str(tmp_path), "AGENTIC_RL_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_package_that_is_not_alfworld_is_named(tmp_path: Path) -> None:
    from agentic_rl.errors import GamesError

    (tmp_path / "data").mkdir()
    (tmp_path / "data/alfred.pddl").write_text("")
    with pytest.raises(GamesError, match=r"the alfworld package in .* pip install 'alfworld"):
        Shipped.load(tmp_path)
