"""Whole runs through the command line, the PyTRIO SDK and a service on 127.0.0.1."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.loopback.server import Loopback
from tests.loopback.state import KEY, Fault

pytestmark = pytest.mark.slow

SMALL = (
    "+recipe=alfworld_grpo_qwen35_4b",
    "games=toy",
    "env=toy",
    "tracker=none",
    "games_per_update=2",
    "group_size=4",
    "lr=0.1",
    "optim.eps=1e-8",
    "rollout.max_steps=6",
    "evaluation.every=2",
    "evaluation.splits=[valid_unseen]",
    "evaluation.temperature=1.0",
    "games.valid_unseen=4",
    "save.every=1",
)
CLI = (sys.executable, "-m", "agentic_rl")


def command(service: Loopback, folder: Path, *words: str) -> list[str]:
    head = ["eval"] if words and words[0] == "eval" else []
    rest = words[1:] if head else words
    where = (f"backend.base_url={service.url}", f"hydra.run.dir={folder}")
    return [*CLI, *head, *SMALL, *where, "backend.retry_seconds=1.0", *rest]


def call(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, timeout=240)


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """Every table, but for times and the run's name."""
    found = {}
    for name in ("episodes", "steps", "updates", "evaluations"):
        frame = pl.read_parquet(folder / f"{name}.parquet")
        found[name] = frame.drop([c for c in frame.columns if c.startswith("seconds")] + ["run_id"])
    return found


def wait_for(log: Path, text: str) -> None:
    until = time.monotonic() + 120
    while text not in log.read_text():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)


def begin(arguments: list[str], cwd: Path, log: Path) -> subprocess.Popen[str]:
    with log.open("w") as target:
        return subprocess.Popen(arguments, cwd=cwd, stdout=target, stderr=target, text=True)


def test_training_earns_more(service: Loopback, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = call(
        command(service, folder, "updates=6", "evaluation.every=0", "backend.canary_tokens=0"),
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    updates = tables(folder)["updates"]
    returns = updates["reward_mean"].to_list()
    assert sum(returns[-2:]) / 2 > sum(returns[:2]) / 2 + 0.2
    assert max(abs(ratio - 1) for ratio in updates["ratio_mean"]) < 1e-5
    assert updates["trainer_rebuilt"].sum() == 0
    assert set(service.state.sessions.values()) == {"ENDED"}
    assert updates["tokens_sampled"].sum() == service.state.usage["sampled"]
    assert updates["tokens_trained"].sum() == service.state.usage["trained"]


def test_killed_and_resumed_equals_uninterrupted(service: Loopback, tmp_path: Path) -> None:
    whole, cut, log = tmp_path / "whole", tmp_path / "cut", tmp_path / "cut.log"
    done = call(command(service, whole, "updates=4"), tmp_path)
    assert done.returncode == 0, done.stderr
    process = begin(command(service, cut, "updates=4"), tmp_path, log)
    try:
        wait_for(log, "update 2/4")
    finally:
        process.kill()
        process.wait()
    resumed = call([*CLI, "resume", str(cut)], tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    expected = tables(whole)
    for name, frame in tables(cut).items():
        assert frame.equals(expected[name]), name

    lines = (cut / "checkpoints.jsonl").read_text().splitlines()
    address = json.loads(lines[-1])["sampler"]
    assert address.startswith("trio://")
    service.state.requests.clear()
    folder = tmp_path / "evaluation"
    scored = call(command(service, folder, "eval", f"checkpoint={address}"), tmp_path)
    assert scored.returncode == 0, scored.stderr
    assert not service.asked("POST /actor/v1/events")
    last = expected["evaluations"].filter(pl.col("update") == 4, pl.col("task_type") == "all")
    assert (
        tables(folder)["evaluations"]
        .filter(pl.col("task_type") == "all")["invalid_actions"]
        .to_list()
        == last["invalid_actions"].to_list()
    )


@pytest.mark.parametrize("gone", [False, True])
def test_ctrl_c_leaves_a_run_to_resume(service: Loopback, tmp_path: Path, gone: bool) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"
    process = begin(command(service, folder, "updates=50"), tmp_path, log)
    try:
        wait_for(log, "update 1/50")
        if gone:
            service.vanish()
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        assert time.monotonic() - started < 10
    finally:
        process.kill()
    said = log.read_text()
    assert "Go on with: agentic-rl resume" in said
    assert ("did not confirm that its session is closed" in said) == gone
    assert json.loads((folder / "run.json").read_text())["status"] == "stopped"
    assert gone or set(service.state.sessions.values()) == {"ENDED"}


def test_a_vanished_service_ends_the_run_in_one_line(service: Loopback, tmp_path: Path) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"
    process = begin(command(service, folder, "updates=50"), tmp_path, log)
    try:
        wait_for(log, "update 1/50")
        service.vanish()
        assert process.wait(timeout=60) != 0
    finally:
        process.kill()
    said = log.read_text()
    assert "cannot be reached" in said
    assert "Traceback" not in said
    assert json.loads((folder / "run.json").read_text())["status"] == "failed"


def test_the_key_is_nowhere_and_no_file_of_the_user_is_written(
    service: Loopback, tmp_path: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key lies in a profile with fields that the SDK would strip if it were let to."""
    profile = user_home / ".pytrio" / "config.toml"
    profile.parent.mkdir()
    text = f'api_key = "{KEY}"\nbase_url = "{service.url}"\nusername = "kept"\n'
    profile.write_text(text)
    monkeypatch.delenv("PYTRIO_API_KEY")
    folder = tmp_path / "run"
    done = call(command(service, folder, "updates=1", "tracker=swanlab"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert KEY not in done.stdout + done.stderr
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 5
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
    assert profile.read_text() == text
    written = {file for file in user_home.rglob("*") if file.is_file()}
    ours = user_home / ".cache" / "agentic-rl"
    assert {file for file in written if ours not in file.parents} == {profile}


def test_no_key_is_one_line_before_anything_is_loaded(
    service: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTRIO_API_KEY")
    done = call(command(service, tmp_path / "run"), tmp_path)
    assert done.returncode != 0
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert "run `trio login`, or set PYTRIO_API_KEY (backend=linear needs none)" in lines[0]
    assert not (tmp_path / "run").exists()
    assert not service.state.requests


REMOTE = {"pytrio", "modelscope", "transformers", "tinker"}


def imports(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Top-level names in what `-X importtime` printed."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize(
    ("words", "expected"),
    [(("--cfg", "job"), False), (("updates=1", "evaluation.every=0"), True)],
)
def test_the_sdk_is_imported_only_where_it_is_used(
    service: Loopback, tmp_path: Path, words: tuple[str, ...], expected: bool
) -> None:
    line = command(service, tmp_path / "run", *words)
    done = call([line[0], "-X", "importtime", *line[1:]], tmp_path)
    assert done.returncode == 0, done.stderr
    assert imports(done) & REMOTE == (
        {"pytrio", "modelscope", "transformers"} if expected else set()
    )


def test_the_embedded_backend_imports_no_sdk(tmp_path: Path) -> None:
    line = [*CLI, "+recipe=debug", "updates=1", f"hydra.run.dir={tmp_path / 'run'}"]
    done = call([line[0], "-X", "importtime", *line[1:]], tmp_path)
    assert done.returncode == 0, done.stderr
    assert not imports(done) & (REMOTE | {"swanlab"})


def test_no_balance_stops_before_the_first_game(service: Loopback, tmp_path: Path) -> None:
    """The base model may be sampled; the trainer is refused."""
    service.state.faults.append(
        Fault(
            "POST /api/openapi/v1/service-sessions/",
            "http",
            skip=1,
            status=402,
            code="billing_insufficient_balance",
        )
    )
    done = call(command(service, tmp_path / "run", "updates=1"), tmp_path)
    assert done.returncode != 0
    assert "top up the account, then continue later with `agentic-rl resume`" in done.stderr
    assert not service.asked("POST /actor/v1/sampling-runs")
    assert set(service.state.sessions.values()) == {"ENDED"}
