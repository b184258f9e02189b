"""Generated games on disk: made once, extended, repaired, and whole under kills and races."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentic_rl.errors import ConfigError, GamesError
from agentic_rl.games import games_sources
from agentic_rl.games.builtin import BuiltinGames
from agentic_rl.games.index import GAME_FILE, TRAJ_FILE
from agentic_rl.types import TASK_TYPES, GameSet

LOAD = (
    "import sys; from agentic_rl.games.builtin import BuiltinGames;"
    "print(BuiltinGames(train=int(sys.argv[1])).load('train').panel_hash)"
)


def ids(games: GameSet) -> list[str]:
    return [task.task_id for task in games.tasks]


def set_folder(cache: Path) -> Path:
    (folder,) = (cache / "games").iterdir()
    return folder


def files(split: Path) -> list[Path]:
    return sorted(path for path in split.rglob("*") if path.is_file())


def test_a_split_holds_what_was_asked_for(cache: Path) -> None:
    games = BuiltinGames(train=13).load("train")
    assert len(games.tasks) == 13 and dict(games.excluded) == {}
    assert ids(games) == sorted(ids(games))
    assert {task.task_type for task in games.tasks} == set(TASK_TYPES)
    for task in games.tasks:
        trial = Path(task.game_file).parent
        assert trial.is_relative_to(cache) and trial.as_posix().endswith(f"/train/{task.task_id}")
        assert sorted(path.name for path in trial.iterdir()) == [GAME_FILE, TRAJ_FILE]
        assert (
            list(task.walkthrough) == json.loads(Path(task.game_file).read_bytes())["walkthrough"]
        )
    listed = json.loads((set_folder(cache) / "train.json").read_bytes())
    assert listed["generated"]["by"] == "agentic-rl"
    assert len(listed["games"]) == 13


def test_more_games_extend_the_set_and_fewer_begin_it(cache: Path) -> None:
    few = BuiltinGames(train=5).load("train")
    stamps = {path: path.stat().st_mtime_ns for path in files(set_folder(cache) / "train")}
    many = BuiltinGames(train=20).load("train")
    assert set(ids(few)) < set(ids(many)) and len(many.tasks) == 20
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert BuiltinGames(train=5).load("train") == few
    assert BuiltinGames(train=20, root=str(cache / "at once")).load("train").panel_hash == (
        many.panel_hash
    )


def test_seeds_and_difficulties_have_sets_of_their_own(cache: Path) -> None:
    hashes = {
        BuiltinGames(train=6, seed=seed, difficulty=difficulty).load("train").panel_hash
        for seed in (0, 1)
        for difficulty in ("tiny", "normal")
    }
    assert len(hashes) == 4
    assert len(list((cache / "games").iterdir())) == 4


def test_a_damaged_game_is_made_again(cache: Path) -> None:
    before = BuiltinGames(train=12).load("train")
    torn, lost, edited = (Path(task.game_file) for task in before.tasks[:3])
    contents = [torn.read_bytes(), lost.read_bytes(), edited.read_bytes()]
    torn.write_bytes(contents[0][:1000])
    shutil.rmtree(lost.parent)
    edited.write_bytes(contents[2].replace(b"go to", b"go at"))
    assert BuiltinGames(train=12).load("train") == before
    assert [torn.read_bytes(), lost.read_bytes(), edited.read_bytes()] == contents


@pytest.mark.parametrize("content", [b"", b"[]", b'{"games": [1]}', b"\xff", b'{"games": '])
def test_a_damaged_list_is_made_again(cache: Path, content: bytes) -> None:
    before = BuiltinGames(train=6).load("train")
    stamps = {path: path.stat().st_mtime_ns for path in files(set_folder(cache) / "train")}
    listed = set_folder(cache) / "train.json"
    whole = listed.read_bytes()
    listed.write_bytes(content)
    assert BuiltinGames(train=6).load("train") == before
    assert listed.read_bytes() == whole
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_two_processes_at_once_make_one_set(cache: Path) -> None:
    command = [sys.executable, "-c", LOAD]
    racing = [
        subprocess.Popen([*command, count], stdout=subprocess.PIPE, text=True)
        for count in ("90", "90", "60")
    ]
    first, second, shorter = (process.communicate()[0] for process in racing)
    assert [process.returncode for process in racing] == [0, 0, 0]
    assert first == second != shorter
    assert first.strip() == BuiltinGames(train=90).load("train").panel_hash
    assert len(files(set_folder(cache) / "train")) == 180
    assert not list(set_folder(cache).glob(".making-*"))


@pytest.mark.parametrize("existing", [0, 30])
def test_a_killed_generation_leaves_no_half_set(cache: Path, existing: int) -> None:
    if existing:
        BuiltinGames(train=existing).load("train")
    process = subprocess.Popen([sys.executable, "-c", LOAD, "640"])
    deadline = time.monotonic() + 60
    while not list(cache.glob("games/*/.making-*/train/*/*/traj_data.json")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder = set_folder(cache)
    assert list(folder.glob(".making-*"))
    assert len(files(folder / "train")) == 2 * existing
    after = BuiltinGames(train=40).load("train")
    assert after == BuiltinGames(train=40).load("train")
    assert len(after.tasks) == 40
    assert len(files(folder / "train")) == 80
    assert not list(folder.glob(".making-*"))


def test_a_second_load_opens_no_game(cache: Path) -> None:
    code = (
        "import sys; from agentic_rl.games.builtin import BuiltinGames; opened = [];"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])));"
        "BuiltinGames(train=12).load('train');"
        "print(sum(name.endswith('game.tw-pddl') for name in opened))"
    )
    command = [sys.executable, "-c", code]
    first, *_, last = (subprocess.check_output(command, text=True) for _ in range(3))
    assert int(first) >= 12
    assert int(last) == 0


def test_slips_are_worded(cache: Path) -> None:
    build = games_sources.build
    with pytest.raises(ConfigError, match=r"difficulty=nromal is not one of .* 'normal'\?"):
        build({"name": "builtin", "difficulty": "nromal"})
    with pytest.raises(ConfigError, match="valid_seen=-1 is below 0"):
        build({"name": "builtin", "valid_seen": -1})
    with pytest.raises(ConfigError, match=r"no option 'vaild_seen'. Did you mean 'valid_seen'\?"):
        build({"name": "builtin", "vaild_seen": 3})
    with pytest.raises(GamesError, match=r"no split 'valid_sen' .* Did you mean 'valid_seen'\?"):
        BuiltinGames().load("valid_sen")
    with pytest.raises(GamesError, match=r"has no game in 'train': type games.train=N"):
        BuiltinGames(train=0).load("train")
    (cache / "file").parent.mkdir(exist_ok=True)
    (cache / "file").write_text("")
    with pytest.raises(GamesError, match=r"cannot be written to .*games.root=PATH"):
        BuiltinGames(train=1, root=str(cache / "file")).load("train")


@pytest.mark.slow
def test_the_default_sets_take_seconds(cache: Path) -> None:
    started = time.process_time()
    sizes = [len(BuiltinGames().load(split).tasks) for split in BuiltinGames().splits]
    assert sizes == [640, 140, 134]
    assert time.process_time() - started < 30
