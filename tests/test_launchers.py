"""A sweep through each launcher that is installed: every job runs and leaves its tables."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from agentic_rl.results import read_record
from tests.processes import call, tables

LAUNCHERS = {"basic": None, "joblib": "joblib", "submitit_local": "submitit", "ray": "ray"}
SWEEP = ("sweep", "+recipe=debug", "updates=1", "evaluation.every=0", "lr=0.01,0.05")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_sweep_through(launcher: str, tmp_path: Path) -> None:
    extra = LAUNCHERS[launcher]
    if extra and find_spec(f"hydra_plugins.hydra_{extra}_launcher") is None:
        pytest.skip(f"needs the extra [{extra}]")
    argv = (*SWEEP, f"hydra/launcher={launcher}", "hydra.sweep.dir=sweep")
    done = call(*argv, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    for job, lr in (("0", "lr=0.01"), ("1", "lr=0.05")):
        record = read_record(tmp_path / "sweep" / job)
        assert record.status == "finished"
        assert lr in record.overrides
        assert len(tables(tmp_path / "sweep" / job)["updates"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_a_failing_job_stops_no_other(launcher: str, tmp_path: Path) -> None:
    if launcher == "joblib" and find_spec("hydra_plugins.hydra_joblib_launcher") is None:
        pytest.skip("needs the extra [joblib]")
    sweep = [*SWEEP[:-1], "env.fail_at=1,0", "rollout.on_error=fail"]
    argv = (*sweep, f"hydra/launcher={launcher}", "hydra.sweep.dir=sweep")
    done = call(*argv, cwd=tmp_path)
    assert done.returncode == 1
    assert "1 of 2 jobs failed" in done.stderr
    assert "  job 1 of 2 (" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("agentic-rl resume sweep")
    assert [read_record(tmp_path / "sweep" / job).status for job in "01"] == ["failed", "finished"]
    again = call("resume", "sweep", cwd=tmp_path)
    assert again.returncode == 1, "the job that fails by its own configuration fails again"
    assert "  job 1 of 2 (" in again.stderr
