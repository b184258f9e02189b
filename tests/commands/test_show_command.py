"""`agentic-rl show`: which trajectory it picks, what it prints, what it refuses."""

from pathlib import Path

import pytest

from agentic_rl.commands.show import lines, main
from agentic_rl.errors import AgenticRLError
from agentic_rl.results import RunFolder, trajectory_row
from agentic_rl.results.trajectories import read_trajectories
from agentic_rl.types import (
    Completion,
    EnvStep,
    Message,
    RewardSignal,
    StateFacts,
    Step,
    StopReason,
    Task,
    Trajectory,
)
from tests.run_folders import new_run

GOLDEN = Path(__file__).parents[1] / "golden"


def _step(observation: str, text: str, action: str | None, result: EnvStep, **more: bool) -> Step:
    return Step(
        observation=observation,
        admissible_actions=("look", "take key"),
        state=StateFacts("d1", ("key",), "desk 1"),
        completion=Completion((1, 2, 3), (-0.1, -0.2, -0.3), text, "stop"),
        action=action,
        malformed=more.get("malformed", False),
        cut=more.get("cut", False),
        result=result,
        prompt_end=20,
    )


def _trajectory(task_id: str = "game-1", branch: int = 0) -> Trajectory:
    steps = (
        _step("A desk.", "<act>look\x1b[2J</act>", "look", EnvStep("A desk with a key.", ())),
        _step("A desk with a key.", "hm", None, EnvStep("", ()), malformed=True),
        _step("A desk with a key.", "eat", "eat key", EnvStep("Nothing.", (), admissible=False)),
        _step("Nothing.", "take", "take key", EnvStep("Taken!", (), done=True, won=True)),
    )
    task = Task(task_id, "valid_seen", "pick_and_place_simple", "f", "digest", ("take key",))
    return Trajectory(task, "g", branch, steps, ((1,) * 30,), True, StopReason.WON)


def _messages() -> list[Message]:
    return [
        Message("system", "You play."),
        Message("user", "Task: take\nthe key"),
        Message("assistant", "<act>look</act>"),
        Message("tool", "A desk with a key."),
    ]


def _keep(run: RunFolder, trajectory: Trajectory, update: int = 3) -> None:
    signal = RewardSignal((0.0, 0.0, 0.0, 1.0), (0.0, -0.1, -0.1, 0.0))
    run.append_trajectories(
        [
            trajectory_row(
                trajectory,
                phase="train",
                update=update,
                messages=_messages(),
                signal=signal,
                advantages=(0.25, 0.25, 0.25, float("nan")),
            )
        ]
    )


def test_a_trajectory_reads_as_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = new_run(tmp_path)
    _keep(run, _trajectory())
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert shown == (GOLDEN / "show.txt").read_text()
    # What a model wrote does not steer the terminal, and the walkthrough stays out.
    assert "\x1b" not in shown
    assert "walkthrough" not in (tmp_path / "trajectories.jsonl").read_text()


def test_the_messages_come_to_the_letter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _keep(new_run(tmp_path), _trajectory())
    main([str(tmp_path), "--messages"])
    shown = capsys.readouterr().out
    for message in _messages():
        assert f"[{message.role}]" in shown
        assert all(f"  {line}" in shown for line in message.content.splitlines())


def test_the_episode_is_found_by_name_part_branch_and_update(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = new_run(tmp_path)
    for update in (1, 2):
        for task_id, branch in (("game-1", 0), ("game-1", 1), ("game-12", 0), ("other", 0)):
            _keep(run, _trajectory(task_id, branch), update)

    def shown(*words: str) -> list[str]:
        main([str(tmp_path), *words])
        return capsys.readouterr().out.splitlines()[:2]

    assert shown()[0].startswith("other ")
    assert shown("--episode", "game-1")[0].startswith("game-1 ")
    assert shown("--episode", "game-1:0", "--update", "1")[1] == "train, update 1, branch 0"
    assert shown("--episode", "ame-12")[0].startswith("game-12 ")
    assert shown("--episode", ":1")[1] == "train, update 2, branch 1"


def test_the_list_names_all_that_were_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = new_run(tmp_path)
    for number in range(3):
        _keep(run, _trajectory(f"game-{number}"), number)
    main([str(tmp_path), "--list", "--update", "1"])
    shown = capsys.readouterr().out
    assert "game-1:0" in shown and "game-2:0" not in shown
    assert "1 trajectories" in shown


def test_a_folder_of_runs_names_them_and_takes_a_lone_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _keep(new_run(tmp_path / "day/one"), _trajectory("game-1"))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("game-1 ")
    new_run(tmp_path / "day/two", seed=7, recipe="other")
    assert main([str(tmp_path), "--list"]) == 0
    shown = capsys.readouterr().out
    assert f"{tmp_path}/day/one" in shown
    assert f"2 runs; read one: agentic-rl show {tmp_path}/day/two" in shown
    (row,) = (line.split() for line in shown.splitlines() if "day/two  " in line)
    assert row[1:5] == ["other", "train", "7", "running"]


def test_a_failed_episode_says_what_failed(tmp_path: Path) -> None:
    task = Task("g", "s", "t", "f", "d")
    failed = Trajectory(task, "g", 0, (), (), False, StopReason.ENV_ERROR, "the engine died")
    new_run(tmp_path).append_trajectories(
        [trajectory_row(failed, phase="evaluation", update=0, messages=[])]
    )
    (row,) = read_trajectories(tmp_path)
    assert "failed: the engine died" in [text for text, _ in lines(row)]


def test_a_torn_last_trajectory_is_left_out(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for _ in range(2):
        _keep(run, _trajectory())
    path = tmp_path / "trajectories.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    assert len(list(read_trajectories(tmp_path))) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "arguments are required: RUN"),
        (["nowhere"], "holds no run"),
        (["none"], "save.trajectories=all"),
        (["run", "--episode", "game-7"], "Did you mean 'game-1'"),
        (["run", "--update", "9"], "--list"),
        (["foreign"], "no trajectories"),
    ],
)
def test_slips_are_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    new_run(tmp_path / "none")
    _keep(new_run(tmp_path / "run"), _trajectory())
    new_run(tmp_path / "foreign")
    (tmp_path / "foreign/trajectories.jsonl").write_text('{"a": 1}\n')
    place = [str(tmp_path / words[0])] if words else []
    with pytest.raises(AgenticRLError, match=message) as caught:
        main([*place, *words[1:]])
    assert "\n" not in str(caught.value)
