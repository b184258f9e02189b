"""`agentic-rl resume RUN [updates=120]`: go on with a run, or with what a sweep still lacks."""

import sys
from collections.abc import Sequence
from pathlib import Path

from agentic_rl.errors import AgenticRLError, RunFolderError, UsageError, did_you_mean

HELP = "go on with a run or a sweep: agentic-rl resume RUN [updates=120]"
HYDRA = False
ABOUT = """\
usage: agentic-rl resume RUN [updates=N]

Goes on with a run from its last complete checkpoint, in its own folder, or with the jobs of a
sweep that are missing, failed or interrupted.

  agentic-rl resume outputs/DATE/TIME                # after Ctrl-C, a crash, a lost machine
  agentic-rl resume outputs/DATE/TIME updates=120    # longer than planned; also a finished run
  agentic-rl resume outputs/sweeps/DATE/TIME         # the jobs that a sweep still lacks
"""


def main(argv: list[str]) -> int:
    if {"-h", "--help"} & set(argv):
        print(ABOUT, end="")
        return 0
    folder, updates = _parse(argv)
    if (folder / "multirun.yaml").is_file() and not (folder / "run.json").is_file():
        if updates is not None:
            raise UsageError("updates= belongs to one run: resume a run of the sweep with it")
        return _resume_sweep(folder)
    from agentic_rl.runner import resume_command

    resume_command(folder, updates=updates)
    return 0


def _parse(argv: Sequence[str]) -> tuple[Path, int | None]:
    words = [word for word in argv if "=" not in word]
    options = dict(word.split("=", 1) for word in argv if "=" in word)
    for key in options:
        if key != "updates":
            near = did_you_mean(key, ["updates"])
            raise UsageError(f"resume keeps the run's configuration; only updates= may grow.{near}")
    if len(words) != 1 or words[0].startswith("-"):
        raise UsageError("type `agentic-rl resume RUN [updates=N]`, RUN a run's or sweep's folder")
    updates = options.get("updates")
    if updates is not None and not updates.isdecimal():
        raise UsageError(f"updates={updates} is not a whole number")
    return Path(words[0]), None if updates is None else int(updates)


def _resume_sweep(folder: Path) -> int:
    """Runs the jobs that are missing, failed or interrupted, one after the other."""
    from agentic_rl.launch import announce, job_labels, say_next

    jobs = _jobs(folder)
    labels = job_labels(jobs)
    left = [number for number in range(len(jobs)) if not _finished(folder / str(number))]
    if not left:
        done = f"{len(jobs)} of {len(jobs)} jobs are finished; nothing to do"
        print(done, file=sys.stderr)
        return 0
    failed = []
    for number in left:
        announce(number, labels)
        try:
            _resume_job(folder / str(number), jobs[number])
        except AgenticRLError as error:
            failed.append(f"  job {number + 1} of {len(jobs)} ({labels[number]}): {error}")
    if failed:
        print(f"{len(failed)} of {len(jobs)} jobs failed:", *failed, sep="\n", file=sys.stderr)
        return 1
    say_next(len(jobs), folder)
    return 0


def _jobs(folder: Path) -> list[list[str]]:
    """Each job's overrides, in the order that the sweep numbered them."""
    from omegaconf import OmegaConf

    from agentic_rl.launch import sweep_jobs

    saved = OmegaConf.load(folder / "multirun.yaml")
    typed = OmegaConf.select(saved, "hydra.overrides.task")
    if typed is None:
        raise RunFolderError(f"{folder / 'multirun.yaml'} does not say what the sweep was")
    params = OmegaConf.select(saved, "hydra.sweeper.params") or {}
    return sweep_jobs([*(f"{key}={value}" for key, value in params.items()), *typed])


def _finished(folder: Path) -> bool:
    from agentic_rl.results import read_record

    try:
        return (folder / "run.json").is_file() and read_record(folder).state == "finished"
    except RunFolderError:
        return False  # a damaged record: its own job says so, and the others go on


def _resume_job(folder: Path, overrides: Sequence[str]) -> None:
    from agentic_rl.launch import run
    from agentic_rl.runner import resume_command

    known = (folder / "run.json").is_file()
    if known and (folder / "resolved.yaml").is_file():
        resume_command(folder)
        return
    again = ["overwrite=true"] if known else []
    if run("train", [*overrides, *again, f"hydra.run.dir={folder}"]):
        raise RunFolderError("see its line above")
