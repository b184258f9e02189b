"""Published games: sorted discovery, the filter with every exclusion counted, and the index."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentic_rl.errors import ConfigError, GamesError
from agentic_rl.games import games_sources
from agentic_rl.games.alfworld import PUBLISHED, ALFWorldGames
from agentic_rl.games.index import GAME_FILE, TRAJ_FILE
from agentic_rl.types import TASK_TYPES

PLAYABLE = {"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", "solvable": True}
Add = Callable[..., Path]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data" / "json_2.1.1").mkdir(parents=True)
    return tmp_path / "data"


@pytest.fixture
def add(root: Path) -> Add:
    def add_trial(
        name: str,
        split: str = "train",
        game: Any = PLAYABLE,
        task_type: str | None = TASK_TYPES[0],
    ) -> Path:
        trial = root / "json_2.1.1" / split / name
        trial.mkdir(parents=True)
        if game is not None:
            content = game if isinstance(game, bytes) else json.dumps(game).encode()
            (trial / GAME_FILE).write_bytes(content)
        if task_type is not None:
            (trial / TRAJ_FILE).write_text(json.dumps({"task_type": task_type}))
        return trial

    return add_trial


def ids(root: Path, split: str = "train", **options: Any) -> list[str]:
    games = ALFWorldGames(root=str(root), **options).load(split)
    return [task.task_id for task in games.tasks]


def test_a_task_is_what_its_files_say(root: Path, add: Add) -> None:
    trial = add("a-Mug/trial_1", game={**PLAYABLE, "walkthrough": ["go to desk 1", "look"]})
    (task,) = ALFWorldGames(root=str(root)).load("train").tasks
    assert (task.task_id, task.split, task.task_type) == ("a-Mug/trial_1", "train", TASK_TYPES[0])
    assert task.game_file == str(trial / GAME_FILE)
    assert task.walkthrough == ("go to desk 1", "look")
    import hashlib

    assert task.digest == hashlib.sha256((trial / GAME_FILE).read_bytes()).hexdigest()


def test_every_exclusion_is_counted_by_its_reason(root: Path, add: Add) -> None:
    add("a/kept")
    add("b_movable_recep/x")
    add("c-AppleSliced/x", game=b"not read")
    add("d/no_traj", task_type=None)
    add("e/no_game", game=None)
    add("f/other", task_type="pick_three_obj_and_place")
    add("g/unsolvable", game={**PLAYABLE, "solvable": False})
    add("h/unmarked", game={key: PLAYABLE[key] for key in PLAYABLE if key != "solvable"})
    add("i/torn", game=b'{"pddl_domain": "')
    add("j/list", game=[])
    add("k/binary", game=b"\xff\xfe")
    add("l/textless", game={**PLAYABLE, "grammar": None})
    add("m/wordless", game={**PLAYABLE, "walkthrough": "look"})
    add("n/deep", game=b"[" * 100_000)
    (root / "json_2.1.1/train/o/empty").mkdir(parents=True)
    (root / "json_2.1.1/train/stray.txt").write_text("")
    games = ALFWorldGames(root=str(root)).load("train")
    assert [task.task_id for task in games.tasks] == ["a/kept"]
    assert dict(games.excluded) == {
        "another task type": 1,
        f"no {GAME_FILE}": 1,
        f"no {TRAJ_FILE}": 1,
        "movable or sliced": 2,
        "not solvable": 2,
        "unreadable": 6,
    }
    assert ALFWorldGames(root=str(root)).load("train") == games


def test_the_root_may_be_either_folder_or_the_environment(
    root: Path, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("a/x")
    assert ids(root) == ids(root / "json_2.1.1") == ["a/x"]
    monkeypatch.setenv("ALFWORLD_DATA", str(root))
    assert len(ALFWorldGames().load("train").tasks) == 1


def test_a_path_above_the_data_excludes_nothing(tmp_path: Path, root: Path, add: Add) -> None:
    add("a/x")
    moved = tmp_path / "movable-Sliced"
    root.rename(moved)
    assert ids(moved) == ["a/x"]


@contextmanager
def shuffled(folder: Any) -> Iterator[Iterator[os.DirEntry[str]]]:
    with SCANDIR(folder) as entries:
        listed = list(entries)
    random.Random(len(listed)).shuffle(listed)
    yield iter(listed)


SCANDIR = os.scandir


def test_the_order_of_directories_does_not_matter(
    root: Path, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{task}/{trial}" for task in ("b", "a-b", "a", "B") for trial in ("t2", "t10", "t1")]
    for name in names:
        add(name)
    plain = ids(root)
    monkeypatch.setattr(os, "scandir", shuffled)
    assert ids(root) == plain == sorted(names)


def test_the_index_notices_what_changes(root: Path, add: Add, cache: Path) -> None:
    first, second = add("a/x"), add("b/x")
    settle(root)
    before = ALFWorldGames(root=str(root)).load("train")
    assert list((cache / "index").iterdir())
    add("c/x")
    assert ids(root) == ["a/x", "b/x", "c/x"]
    (second / GAME_FILE).unlink()
    assert ALFWorldGames(root=str(root)).load("train").excluded == {f"no {GAME_FILE}": 1}
    (second / TRAJ_FILE).unlink()
    second.rmdir()
    assert ids(root) == ["a/x", "c/x"]
    (first / TRAJ_FILE).write_text(json.dumps({"task_type": TASK_TYPES[5]}))
    assert ALFWorldGames(root=str(root)).load("train").tasks[0].task_type == TASK_TYPES[5]
    (first / GAME_FILE).write_text(json.dumps({**PLAYABLE, "grammar": "other"}))
    after = ALFWorldGames(root=str(root)).load("train")
    assert after.tasks[0].digest != before.tasks[0].digest


def test_a_change_under_the_same_size_and_time_is_noticed(root: Path, add: Add) -> None:
    game = add("a/x") / GAME_FILE
    settle(root)
    before = ALFWorldGames(root=str(root)).load("train").tasks[0]
    stat = game.stat()
    game.write_bytes(game.read_bytes().replace(b'"g"', b'"h"'))
    os.utime(game, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert game.stat().st_size == stat.st_size and game.stat().st_mtime_ns == stat.st_mtime_ns
    assert ALFWorldGames(root=str(root)).load("train").tasks[0].digest != before.digest


def test_a_file_just_written_is_read_again(root: Path, add: Add) -> None:
    game = add("a/x") / GAME_FILE
    digests = set()
    for letter in "abcdefgh":
        game.write_text(json.dumps({**PLAYABLE, "grammar": letter}))
        digests.add(ALFWorldGames(root=str(root)).load("train").tasks[0].digest)
    assert len(digests) == 8


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"format": 0, "trials": {"a/x": 1}}',
        b'{"format": 1, "trials": {"a/x": 1}}',
        b'{"format": 1, "trials": {"a/x": [1, 2, 3, 4, 5, 6, "", "", "t", "d", [7]]}}',
        b'{"format": 1, "trials": []}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_index_is_made_again(root: Path, add: Add, cache: Path, damage: bytes) -> None:
    add("a/x")
    settle(root)
    before = ALFWorldGames(root=str(root)).load("train")
    (index,) = (cache / "index").iterdir()
    whole = index.read_bytes()
    index.write_bytes(damage)
    assert ALFWorldGames(root=str(root)).load("train") == before
    assert index.read_bytes() == whole


def test_discovery_works_where_no_index_can_be_kept(root: Path, add: Add, cache: Path) -> None:
    add("a/x")
    settle(root)
    cache.write_text("a file where the folder should be")
    assert ids(root) == ["a/x"]


def test_task_types_limit_and_only_choose(root: Path, add: Add) -> None:
    for number in range(12):
        add(f"t{number:02}/x", task_type=TASK_TYPES[number % 6])
    two = ALFWorldGames(root=str(root), task_types=[TASK_TYPES[1], TASK_TYPES[4]]).load("train")
    assert [task.task_id for task in two.tasks] == ["t01/x", "t04/x", "t07/x", "t10/x"]
    assert two.excluded == {"task type not asked for": 8}
    four, five = ids(root, limit=4), ids(root, limit=5)
    assert len(four) == 4 and set(four) < set(five) and five == sorted(five)
    limited = ALFWorldGames(root=str(root), limit=5).load("train")
    assert limited.excluded == {"over the limit": 7}
    assert ids(root, only=["t03", "t01/x"]) == ["t01/x", "t03/x"]


def test_games_that_are_missing_say_what_to_type(
    root: Path, add: Add, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    remedy = "agentic-rl data download.*ALFWORLD_DATA.*games=builtin"
    with pytest.raises(GamesError, match=rf"games.root=.*holds no json_2.1.1; .*{remedy}"):
        ids(tmp_path / "nowhere")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(GamesError, match=rf"ALFWORLD_DATA=.*elsewhere holds no.*{remedy}"):
        ALFWorldGames().load("train")
    monkeypatch.delenv("ALFWORLD_DATA")
    with pytest.raises(GamesError, match=rf"games.root and .ALFWORLD_DATA are not set.*{remedy}"):
        ALFWorldGames().load("train")
    add("a/x")
    with pytest.raises(GamesError, match=rf"no split 'valid_seen' in .*holds train; .*{remedy}"):
        ids(root, "valid_seen")
    with pytest.raises(GamesError, match=r"no split 'vaild_seen' .* Did you mean 'valid_seen'\?"):
        ids(root, "vaild_seen")


def test_a_folder_without_a_playable_game_is_an_error(root: Path, add: Add) -> None:
    (root / "json_2.1.1/valid_seen").mkdir()
    with pytest.raises(GamesError, match=rf"no games in .*valid_seen: they lie in .*{GAME_FILE}"):
        ids(root, "valid_seen")
    add("a/x", game=b"torn")
    add("b/x", game={**PLAYABLE, "solvable": False})
    expected = r"no game in .*/train can be played: 1 not solvable, 1 unreadable;.*a/x: .*not JSON"
    with pytest.raises(GamesError, match=expected):
        ids(root)


def test_a_game_asked_for_by_name_must_be_there_and_playable(root: Path, add: Add) -> None:
    add("a-Mug/trial_1")
    add("b-Mug/trial_1", game=b"torn")
    add("c-Mug_movable/trial_1")
    add("d-Mug/trial_1", split="valid_seen")
    with pytest.raises(GamesError, match=r"'a-Mgu', which .* Did you mean 'a-Mug'\?"):
        ids(root, only=["a-Mgu"])
    with pytest.raises(GamesError, match=r"cannot be played: .*b-Mug/trial_1: .*not JSON"):
        ids(root, only=["a-Mug", "b-Mug"])
    with pytest.raises(GamesError, match=r"cannot be played: .*c-Mug_movable/.*movable or sliced"):
        ids(root, only=["c-Mug_movable/trial_1"])
    with pytest.raises(GamesError, match=r"games.only names no game of the split 'train'"):
        ids(root, only=["d-Mug"])
    assert ids(root, only=["a-Mug", "d-Mug"]) == ["a-Mug/trial_1"]


def test_slips_are_worded() -> None:
    build = games_sources.build
    with pytest.raises(ConfigError, match=r"unknown task type 'look_at_obj'.* 'look_at_obj_in_"):
        build({"name": "alfworld", "task_types": ["look_at_obj"]})
    with pytest.raises(ConfigError, match="limit=0 is below 1"):
        build({"name": "alfworld", "limit": 0})
    with pytest.raises(ConfigError, match=r"no option 'rot'. Did you mean 'root'\?"):
        build({"name": "alfworld", "rot": "x"})


def settle(root: Path) -> None:
    """Files that were just written are read twice: make them old enough to be remembered."""
    time.sleep(0.08)


@pytest.mark.real
def test_the_published_games_are_counted_as_documented(alfworld_data: Path) -> None:
    games = ALFWorldGames(root=str(alfworld_data)).load("valid_seen")
    counts = Counter(task.task_type for task in games.tasks)
    assert [counts[task_type] for task_type in TASK_TYPES] == [35, 13, 27, 16, 25, 24]
    assert len(games.tasks) == PUBLISHED["valid_seen"]
    assert games.excluded == {"movable or sliced": 64, "not solvable": 47}
    assert all(task.walkthrough for task in games.tasks)


@pytest.mark.real
def test_the_second_discovery_is_quick(alfworld_data: Path) -> None:
    source = ALFWorldGames(root=str(alfworld_data))
    first = source.load("train")
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        assert source.load("train") == first
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.2
