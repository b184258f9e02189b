"""Opens a run folder, builds the parts, calls train or evaluate, and closes everything again."""

import asyncio
import errno
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rl import checkpoint as checkpoints
from agentic_rl import warm_start
from agentic_rl.config import Experiment
from agentic_rl.console import Console
from agentic_rl.errors import ConfigError, GamesError, RunFolderError, did_you_mean
from agentic_rl.evaluate import evaluate
from agentic_rl.parts import Parts, check_limit
from agentic_rl.results import RunFolder, RunRecord, new_record, read_record
from agentic_rl.results.writer import CONFIG
from agentic_rl.session import BudgetReached, Session
from agentic_rl.summary import print_evaluations, print_summary
from agentic_rl.train import train
from agentic_rl.training import Checkpoint, Usage
from agentic_rl.types import GameSet
from agentic_rl.update import TRAIN

if TYPE_CHECKING:
    from omegaconf import DictConfig


_ALWAYS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = (*_ALWAYS, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO}


@dataclass(frozen=True)
class _Start:
    """Where a run begins: at which update, from which weights, with what already spent."""

    update: int = 0
    weights: Checkpoint | None = None
    optimizer: bool = False
    spent: Usage = field(default_factory=Usage)


def train_command(
    cfg: "DictConfig", *, recipe: str | None, overrides: Sequence[str], folder: Path, multirun: bool
) -> None:
    """One training run into `folder`; AgenticRLError, one line, for anything the user can mend."""
    experiment = Experiment.from_cfg(cfg)
    experiment.recipe = recipe or experiment.recipe
    if experiment.split is not None:
        raise ConfigError("split= belongs to eval; training evaluates evaluation.splits")
    _run_new(experiment, overrides, folder, _start(experiment), bars=not multirun)


def eval_command(
    cfg: "DictConfig", *, recipe: str | None, overrides: Sequence[str], folder: Path, multirun: bool
) -> None:
    """Scores a checkpoint under its own run's configuration, or a recipe's base weights."""
    experiment = checkpoints.experiment_for_eval(cfg, recipe, overrides)
    _run_new(experiment, overrides, folder, _start(experiment), bars=not multirun)


def resume_command(folder: Path, *, updates: int | None = None, bars: bool = True) -> None:
    """Goes on with a run in its own folder, from its last complete checkpoint."""
    experiment = checkpoints.experiment_of(folder)
    experiment.overwrite = False
    record = read_record(folder)
    last = checkpoints.last(folder)
    _check_resume(record, experiment, last.update if last else 0, updates)
    if updates is not None:
        experiment.updates = updates
    start = replace(_start(experiment), spent=checkpoints.used(folder))
    if last and experiment.command == "train":
        start = _Start(last.update, last.checkpoint, True, start.spent)
    parts = Parts.build(experiment)
    games = _load_games(experiment, parts)
    with _writing(folder):
        run = RunFolder.reopen(folder, record)
        if experiment.command == "train":
            run.cut_after(start.update)
        run.write_config(experiment.to_container())
        session = Session(experiment, parts, run, Console(bars=bars), games, start.spent)
        _drive(session, start)


def _start(experiment: Experiment) -> _Start:
    """From `checkpoint=`: an evaluation counts as made at its update, training begins anew."""
    if not experiment.checkpoint:
        return _Start()
    found = checkpoints.find(experiment.checkpoint)
    return _Start(found.update if experiment.command == "eval" else 0, found.checkpoint)


def _check_resume(record: RunRecord, experiment: Experiment, done: int, asked: int | None) -> None:
    """RunFolderError where there is nothing left to do, ConfigError for an impossible wish."""
    if asked is not None and experiment.command != "train":
        raise ConfigError("updates= belongs to training runs")
    updates = experiment.updates if asked is None else asked
    if updates < done:
        raise ConfigError(f"updates={updates}: the run has a checkpoint of update {done} already")
    if record.state == "finished" and updates == experiment.updates:
        more = f": go on with updates=N above {updates}" if experiment.command == "train" else ""
        raise RunFolderError(f"the run is finished{more}")


def _run_new(
    experiment: Experiment, overrides: Sequence[str], folder: Path, start: _Start, *, bars: bool
) -> None:
    parts = Parts.build(experiment)
    _check_weights(start, parts)
    games = _load_games(experiment, parts)
    if experiment.command == "train" and start.weights is None:
        warm_start.chosen(experiment, parts, games[TRAIN].tasks)
    record = new_record(
        experiment.command,
        recipe=experiment.recipe,
        overrides=overrides,
        seed=experiment.seed,
    )
    with _writing(folder):
        run = RunFolder.create(folder, record, overwrite=experiment.overwrite)
        run.write_config(experiment.to_container())
        run.describe(panels={split: games[split].panel_hash for split in games})
        _drive(Session(experiment, parts, run, Console(bars=bars), games), start)


def _check_weights(start: _Start, parts: Parts) -> None:
    """A service's address is of no use to a local backend, nor a folder to a service."""
    if start.weights is None:
        return
    remote = "://" in start.weights.sampler
    if remote != parts.backend.capabilities.remote:
        where = "a service's address" if remote else "a folder of this machine"
        raise ConfigError(f"checkpoint={start.weights.sampler} is {where}: choose its own backend")


def _load_games(experiment: Experiment, parts: Parts) -> dict[str, GameSet]:
    splits = list(experiment.evaluation.splits) if experiment.evaluation.every else []
    if experiment.command == "eval":
        splits = list(experiment.evaluation.splits)
    else:
        splits = [TRAIN, *splits]
    known = parts.games.splits
    for split in splits:
        if split not in known:
            near = did_you_mean(split, known)
            raise GamesError(f"unknown split '{split}'.{near} Known: {', '.join(known)}.")
    return {split: parts.games.load(split) for split in dict.fromkeys(splits)}


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A disk that is full or may not be written to is the user's to mend, not a bug."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        place = error.filename or folder
        raise RunFolderError(f"{place} cannot be written: {error.strerror}") from error


def _drive(session: Session, start: _Start) -> None:
    """Runs the command to its end, whatever that is, and says in the folder which it was."""
    console, folder = session.console, session.folder
    console.line(f"run {session.place}")
    session.parts.tracker.start(folder.run_id, folder.path, session.experiment.to_container())
    status: Any = "failed"
    error: str | None = None
    can_go_on = True
    try:
        _await(lambda: _command(session, start))
        status = "finished"
    except (KeyboardInterrupt, asyncio.CancelledError):
        status, error = "stopped", "stopped by a signal"
    except BudgetReached as reached:
        status, error = "stopped", str(reached)
    except BaseException as failure:
        error = f"{type(failure).__name__}: {failure}"
        # What the configuration asks for cannot be had: to go on would fail the same way.
        can_go_on = not isinstance(failure, ConfigError)
        raise
    finally:
        try:
            folder.finish(status, error)
        except BaseException:
            status = "interrupted"
            raise
        finally:
            session.parts.tracker.finish(status)
            if status != "finished":
                hint = f" Go on with: agentic-rl resume {session.typed}" if can_go_on else ""
                console.line(f"{status}.{hint}")
    if status == "stopped":
        if isinstance(error, str) and error.startswith("budget"):
            console.line(f"{error}: to go on, first raise it in {session.place / CONFIG}")
            return
        raise KeyboardInterrupt
    print_summary(session)


async def _command(session: Session, start: _Start) -> None:
    backend = session.parts.backend
    try:
        await backend.start()
        check_limit(session.experiment, session.parts)
        if start.weights is not None:
            await backend.load(start.weights, optimizer=start.optimizer)
        if session.collector.codec is not None:
            session.console.line(session.collector.codec.framing.note)
        if session.experiment.command == "eval":
            done = session.folder.keep_finished_episodes(start.update)
            rows = await evaluate(session, start.update, session.experiment.evaluation.splits, done)
            print_evaluations(session, rows)
        else:
            if start.weights is None:
                await warm_start.imitate(session)
            await train(session, start.update)
    finally:
        await session.parts.env.close()
        await backend.close()


def _await(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs `work`; the first SIGINT or SIGTERM cancels it cleanly, a second one at once.

    So does SIGHUP, which a lost terminal sends, unless `nohup` has it ignored.
    """

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def stop(number: signal.Signals) -> None:
            signal.signal(number, signal.SIG_DFL)
            loop.remove_signal_handler(number)
            task.cancel()

        for number in _STOPPING:
            if number not in _ALWAYS and signal.getsignal(number) is signal.SIG_IGN:
                continue
            try:
                loop.add_signal_handler(number, stop, number)
            except (NotImplementedError, RuntimeError, ValueError):
                # Not the main thread, or not a Unix: the default handlers stay.
                continue
        await work()

    asyncio.run(main())
