"""Trackers mirror; they leave the process as they found it and stop nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from agentic_rl.errors import ConfigError
from agentic_rl.interfaces import Tracker
from agentic_rl.tracker import trackers

CONF = Path(__file__).parents[2] / "conf" / "tracker"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user settings, no login, a folder of its own."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith("SWANLAB_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(home)


def build(**fields: object) -> Tracker:
    return trackers.build({"name": "swanlab", **fields})


@pytest.mark.parametrize("name", trackers.names())
def test_yaml_equals_the_defaults(name: str) -> None:
    spec = OmegaConf.to_container(OmegaConf.load(CONF / f"{name}.yaml"))
    assert isinstance(spec, dict)
    assert trackers.build({str(key): value for key, value in spec.items()}) == trackers.get(name)()


def test_offline_writes_into_the_run_folder_and_changes_nothing_else(tmp_path: Path) -> None:
    before = (sys.excepthook, sys.stdout.write, sys.stderr.write, signal.getsignal(signal.SIGINT))
    tracker = build(mode="offline")
    tracker.start("run-1", tmp_path / "run", {"lr": 0.1, "optim": {"eps": 1e-8}})
    for update in range(3):
        tracker.log({"train/loss": float(update)}, update)
    tracker.finish("finished")
    after = (sys.excepthook, sys.stdout.write, sys.stderr.write, signal.getsignal(signal.SIGINT))
    assert after == before
    records = list((tmp_path / "run" / "swanlab").rglob("*.swanlab"))
    assert len(records) == 1
    assert records[0].stat().st_size > 0
    assert list(Path.cwd().iterdir()) == []


def test_online_without_a_key_goes_on_offline_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = build(mode="online")
    started = time.monotonic()
    tracker.start("run-1", tmp_path / "run", {})
    assert time.monotonic() - started < 1
    tracker.log({"train/loss": 1.0}, 1)
    tracker.finish("stopped")
    said = [record.getMessage() for record in caplog.records if "agentic_rl" in record.name]
    assert len(said) == 1
    assert said[0].endswith("mirroring offline")
    assert "\n" not in said[0]
    assert list((tmp_path / "run" / "swanlab").rglob("*.swanlab"))


UNREACHABLE = """
import sys
from pathlib import Path
from agentic_rl.tracker import trackers

tracker = trackers.build({"name": "swanlab", "mode": "online", "finish_seconds": 2.0})
tracker.start("run-1", Path(sys.argv[1]), {})
tracker.log({"train/loss": 1.0}, 1)
tracker.finish("finished")
"""


@pytest.mark.slow
def test_a_key_that_reaches_nobody_holds_up_neither_run_nor_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWANLAB_API_KEY", "planted-key-0123456789")
    monkeypatch.setenv("SWANLAB_API_HOST", "http://127.0.0.1:9")
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", UNREACHABLE, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert time.monotonic() - started < 12
    assert "its copy of the run may lack the end" in done.stderr
    assert "planted-key" not in done.stdout + done.stderr


def test_disabled_imports_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from agentic_rl.tracker import trackers;"
        "t = trackers.build({'name': 'swanlab', 'mode': 'disabled'});"
        f"t.start('r', Path({str(tmp_path)!r}), {{}});"
        "t.log({'a': 1.0}, 1); t.finish('finished');"
        "assert 'swanlab' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not (tmp_path / "swanlab").exists()


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"tracker\.mode=ofline .*Did you mean 'offline'\?"):
        build(mode="ofline")


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("finished", "RUN_STATE_FINISHED"),
        ("failed", "RUN_STATE_CRASHED"),
        ("stopped", "RUN_STATE_ABORTED"),
    ],
)
def test_every_exit_tells_its_true_state(tmp_path: Path, status: str, state: str) -> None:
    tracker = build(mode="offline")
    tracker.start("run-1", tmp_path / "run", {})
    tracker.log({"train/loss": 1.0}, 1)
    tracker.finish(status)
    assert recorded_state(tmp_path / "run") == state


def recorded_state(folder: Path) -> str:
    """The state in SwanLab's own file, read with its own reader."""
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    from swanlab.proto.swanlab.run.v1.run_pb2 import RunState
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    reader = DataStoreReader()
    reader.open(next((folder / "swanlab").rglob("*.swanlab")))
    found = ""
    for content in reader:
        record = Record()
        record.ParseFromString(content)
        if record.HasField("finish"):
            found = RunState.Name(record.finish.state)
    reader.close()
    return found
