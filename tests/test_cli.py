"""The first word finds the command; Hydra gets the rest; every end has its exit status."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agentic_rl import __version__, commands
from agentic_rl.cli import dispatch, usage

HEAVY = {"hydra", "omegaconf", "polars", "torch", "pytrio", "textworld", "transformers", "swanlab"}
QUICK = [
    "+recipe=debug",
    "updates=1",
    "games_per_update=1",
    "group_size=2",
    "evaluation.every=0",
    "evaluation.at_start=false",
    "rollout.max_steps=2",
]
OWN_COMMAND = """
from agentic_rl.errors import ConfigError

HELP = "a command of the test's own"
HYDRA = True
PRIMARY = "train"


def run(cfg):
    if cfg.seed == 1:
        raise ConfigError("seed 1 is not liked")
    if cfg.seed == 2:
        raise ZeroDivisionError("a bug")
    if cfg.seed == 3:
        raise KeyboardInterrupt
    print("seed", cfg.seed)
"""
OWN_WORDS = """
HELP = "a command with a word"
HYDRA = True
PRIMARY = "train"
WORDS = "RUN"


def run(cfg, words):
    print(words, cfg.seed)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def own_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two more modules among the commands."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "own.py").write_text(OWN_COMMAND)
    (folder / "own_words.py").write_text(OWN_WORDS)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(folder)])
    for name in ("own", "own_words"):
        monkeypatch.delitem(sys.modules, f"agentic_rl.commands.{name}", raising=False)


def _run(*argv: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentic_rl", *argv],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_imports_nothing_heavy(here: Path) -> None:
    code = """
    import sys
    from agentic_rl.cli import dispatch
    status = dispatch(["--help"])
    print(status, *sorted(sys.modules))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        cwd=here,
    )
    status, *modules = done.stdout.splitlines()[-1].split()
    assert status == "0"
    assert "agentic_rl.commands.train" in modules
    assert not HEAVY & {module.partition(".")[0] for module in modules}


def test_help_is_quick(here: Path) -> None:
    def seconds() -> float:
        """Of the processor: other work on the machine does not count."""
        before = os.times()
        assert _run("--help", cwd=here).returncode == 0
        after = os.times()
        user = after.children_user - before.children_user
        return user + after.children_system - before.children_system

    assert min(seconds() for _ in range(5)) < 0.3


def test_usage_names_every_command_in_one_line() -> None:
    lines = usage().splitlines()
    for name in commands.names():
        module = commands.load(name)
        assert "\n" not in module.HELP
        assert isinstance(module.HYDRA, bool)
        assert [line for line in lines if line.split()[:1] == [name]], name
        assert callable(module.run if module.HYDRA else module.main)


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_all_and_of_one(flag: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ([], [flag]):
        assert dispatch(argv) == 0
        assert capsys.readouterr().out.startswith("usage: agentic-rl")
    assert dispatch(["eval", flag]) == 0
    out = capsys.readouterr().out
    assert "agentic-rl eval" in out
    assert "reward: " in out
    assert "command: eval" in out


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("train", ["agentic-rl +recipe=debug", "seed=1"]),
        ("eval", ["checkpoint=outputs/DATE/TIME", "split=valid_seen"]),
        ("sweep", ["lr=0.01,0.05", "hydra/launcher=joblib", "ray", "submitit_slurm"]),
    ],
)
def test_help_begins_with_what_the_command_does(
    command: str, parts: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch([command, "--help"]) == 0
    own, page, _ = capsys.readouterr().out.partition(f"agentic-rl {command} [key=value ...]")
    assert page
    for part in parts:
        assert part in own


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_resume(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["resume", flag]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: agentic-rl resume RUN [updates=N]\n")
    assert err == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["--version"]) == 0
    assert capsys.readouterr().out == f"agentic-rl {__version__}\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["+recipe=debug", "seed=3", "--cfg", "job"],
        ["--cfg", "job", "+recipe=debug", "seed=3"],
        ["+recipe=debug", "--cfg", "job", "seed=3"],
        ["train", "+recipe=debug", "--cfg=job", "seed=3"],
        ["--cfg", "job", "train", "+recipe=debug", "seed=3"],
        ["+recipe=debug", "-c", "job", "--resolve", "seed=3"],
        ["sweep", "+recipe=debug", "seed=3", "--cfg", "job"],
    ],
)
def test_flags_may_stand_anywhere(
    argv: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(argv) == 0
    out = capsys.readouterr().out
    assert "command: train" in out
    assert "seed: 3" in out
    assert "name: toy" in out
    assert not list(here.iterdir())


def test_a_command_has_its_own_primary(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["eval", "--cfg", "job", "--package", "command"]) == 0
    assert capsys.readouterr().out == "eval\n"


def test_words_go_to_the_command(
    here: Path, own_commands: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["own_words", "outputs/x", "seed=4"]) == 0
    assert capsys.readouterr().out == "['outputs/x'] 4\n"
    assert dispatch(["own_words", "seed=4"]) == 2
    assert "agentic-rl own_words RUN" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seed", "status", "err"), [(0, 0, ""), (1, 1, "seed 1 is not liked\n"), (3, 130, "")]
)
def test_exit_statuses(
    seed: int,
    status: int,
    err: str,
    here: Path,
    own_commands: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["own", f"seed={seed}"]) == status
    assert capsys.readouterr().err == err


def test_a_bug_keeps_its_traceback(
    here: Path, own_commands: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["own", "seed=2"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert 'raise ZeroDivisionError("a bug")' in err
    assert err.count("ZeroDivisionError: a bug") == 1
    assert not list(here.iterdir())


def test_a_failing_job_stops_no_other(
    here: Path, own_commands: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["own", "seed=0,1,2,4", "-m"]) == 1
    out, err = capsys.readouterr()
    assert out == "seed 0\nseed 4\n"
    (sweep,) = here.glob("outputs/sweeps/*/*")
    assert err.endswith(
        "2 of 4 jobs failed:\n"
        "  job 2 of 4 (seed=1): seed 1 is not liked\n"
        "  job 3 of 4 (seed=2): ZeroDivisionError: a bug\n"
        f"Run these again with: agentic-rl resume {sweep.relative_to(here)}\n"
    )


def test_a_sweep_says_where_it_is_and_what_is_next(
    here: Path, own_commands: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["own", "-m", "updates=3", "seed=0,4", "group_size=4,8"]) == 0
    (sweep,) = here.glob("outputs/sweeps/*/*")
    assert capsys.readouterr().err == (
        "job 1 of 4: seed=0 group_size=4\n"
        "job 2 of 4: seed=0 group_size=8\n"
        "job 3 of 4: seed=4 group_size=4\n"
        "job 4 of 4: seed=4 group_size=8\n"
        f"4 jobs finished; next: agentic-rl compare {sweep.relative_to(here)}\n"
    )
    assert dispatch(["own", "-m", "seed=0"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("job 1 of 1: seed=0\n1 job finished; next: ")


def test_resuming_a_sweep_says_what_it_does(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["sweep", *QUICK, "seed=0,1", "hydra.sweep.dir=sweep"]) == 0
    capsys.readouterr()
    assert dispatch(["resume", "sweep"]) == 0
    assert capsys.readouterr().err == "2 of 2 jobs are finished; nothing to do\n"
    shutil.rmtree(here / "sweep" / "1")
    assert dispatch(["resume", "sweep"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("job 2 of 2: seed=1\n")
    assert err.endswith("2 jobs finished; next: agentic-rl compare sweep\n")
    assert _jobs(here / "sweep") == ["0", "1"]


def test_a_damaged_job_of_a_sweep_stops_no_other(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["sweep", *QUICK, "seed=0,1", "hydra.sweep.dir=sweep"]) == 0
    (here / "sweep" / "0" / "run.json").write_text("{")
    shutil.rmtree(here / "sweep" / "1")
    assert dispatch(["resume", "sweep"]) == 1
    assert "1 of 2 jobs failed:\n  job 1 of 2 (seed=0): " in capsys.readouterr().err
    assert _jobs(here / "sweep") == ["0", "1"]


def test_jobs_that_fail_alike_are_said_once(
    here: Path, own_commands: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["own", "-m", "seed=1", "updates=1,2"]) == 1
    assert capsys.readouterr().err == (
        "job 1 of 2: updates=1\njob 2 of 2: updates=2\n2 of 2 jobs failed: seed 1 is not liked\n"
    )
    assert not list(here.iterdir())


def test_train_and_its_saved_configuration(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch([*QUICK, "hydra.run.dir=outputs/first"]) == 0
    assert (here / "outputs/first/run.json").is_file()
    again = ["--config-dir", "outputs/first", "--config-name", "resolved"]
    assert dispatch([*again, "hydra.run.dir=outputs/again"]) == 0
    first, second = (
        (here / "outputs" / run / "resolved.yaml").read_text() for run in ("first", "again")
    )
    assert first == second
    capsys.readouterr()
    assert dispatch([*again, "hydra.run.dir=outputs/first"]) == 1
    assert "overwrite=true" in capsys.readouterr().err


def test_a_forgotten_recipe_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "no recipe named: the defaults of conf/base.yaml\n"
    toy = ["env=toy", "games=toy", "backend=linear_cold", *QUICK[1:]]
    assert dispatch([*toy, "hydra.run.dir=outputs/first"]) == 0
    assert capsys.readouterr().err.startswith(said)
    assert dispatch(["sweep", *toy, "seed=0,1"]) == 0
    assert capsys.readouterr().err.count(said) == 1
    again = ["--config-dir", "outputs/first", "--config-name", "resolved"]
    for argv in (QUICK, [*again, "hydra.run.dir=outputs/again"]):
        assert dispatch(argv) == 0
        assert said not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "shown"), [("+recipe=debug", "debug"), ("+recipe=[debug,debug]", "debug+debug")]
)
def test_the_shown_configuration_names_its_recipe(
    typed: str, shown: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("train", "sweep", "eval"):
        assert dispatch([command, typed, "--cfg", "job"]) == 0
        assert f"\nrecipe: {shown}\n" in capsys.readouterr().out
    assert dispatch(["--cfg", "job"]) == 0
    assert "\nrecipe: null\n" in capsys.readouterr().out


def test_stacked_recipes_are_both_named(here: Path) -> None:
    (here / "recipes").mkdir()
    (here / "recipes" / "short.yaml").write_text("# @package _global_\nupdates: 0\n")
    quick = [word for word in QUICK if not word.startswith(("+recipe", "updates"))]
    assert dispatch(["+recipe=[debug,short]", *quick, "hydra.run.dir=outputs/x"]) == 0
    assert json.loads((here / "outputs/x/run.json").read_text())["recipe"] == "debug+short"


def _jobs(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.rglob("run.json"))


@pytest.mark.parametrize(
    "argv",
    [["sweep", *QUICK, "seed=0,1"], [*QUICK, "--multirun", "seed=0,1"]],
)
def test_a_sweep_has_one_folder_a_job(argv: list[str], here: Path) -> None:
    assert dispatch(argv) == 0
    assert _jobs(here / "outputs" / "sweeps") == ["0", "1"]


def test_a_sweep_goes_on_and_says_what_failed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["sweep", *QUICK, "checkpoint=nowhere,null"]) == 1
    assert _jobs(here / "outputs" / "sweeps") == ["1"]
    assert "1 of 2 jobs failed:\n  job 1 of 2 (checkpoint=nowhere): " in capsys.readouterr().err


def test_a_sweep_over_recipes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "recipes").mkdir()
    for name in ("one", "two"):
        text = "# @package _global_\ndefaults:\n  - /recipe/debug\nrollout:\n  max_steps: 2\n"
        (here / "recipes" / f"{name}.yaml").write_text(text)
    quick = [word for word in QUICK if not word.startswith("+recipe")]
    assert dispatch(["sweep", "+recipe=glob(*,exclude=[debug,alfworld*])", *quick]) == 0
    assert _jobs(here / "outputs" / "sweeps") == ["0", "1"]


@pytest.mark.slow
def test_joblib_runs_the_jobs(here: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    done = _run(
        "sweep",
        *QUICK,
        "checkpoint=null,nowhere",
        "hydra/launcher=joblib",
        "hydra.launcher.n_jobs=2",
        cwd=here,
    )
    assert done.returncode == 1
    assert _jobs(here / "outputs" / "sweeps") == ["0"]
    assert "1 of 2 jobs failed:\n  job 2 of 2 (" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "shown", "hidden"),
    [
        ("agentic-rl ev", "eval", "train"),
        ("agentic-rl eval +recipe=alf", "+recipe=alfworld_grpo", "+recipe=debug"),
        ("agentic-rl sweep reward=success", "reward=success_minus_invalid", "reward=brevity"),
        ("agentic-rl +rec", "+recipe=", ""),
        ("agentic-rl rollout.max_s", "rollout.max_steps=", "rollout.retries="),
        ("agentic-rl list rew", "", "reward"),
    ],
)
def test_completion(
    line: str,
    shown: str,
    hidden: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    assert dispatch(["-sc", "query=bash"]) == 0
    words = capsys.readouterr().out.split()
    assert shown in words or not shown
    assert hidden not in words


def test_completion_in_bash(here: Path) -> None:
    program = Path(sys.executable).with_name("agentic-rl")
    assert program.is_file()
    script = """
    eval "$(agentic-rl -sc install=bash)"
    COMP_LINE="agentic-rl eval +recipe=deb" COMP_POINT=27 COMP_CWORD=2
    hydra_bash_completion
    echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=here,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "+recipe=debug"


def test_a_closed_pipe_is_no_error(here: Path) -> None:
    program = f"{sys.executable} -m agentic_rl --help | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], cwd=here, capture_output=True, text=True)
    assert done.stderr == ""
