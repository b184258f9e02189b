"""Runs a command through Hydra: one job, or the jobs of a sweep. Slips are found before a job."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from agentic_rl import commands, compose
from agentic_rl.config import Experiment
from agentic_rl.errors import AgenticRLError, ConfigError, RunFolderError, UsageError, did_you_mean
from agentic_rl.searchpath import recipe_names, short

_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


@dataclass(frozen=True)
class Failure:
    """A job's end by an error, as the value it hands back, so that the others go on."""

    overrides: tuple[str, ...]
    line: str
    bug: bool


@dataclass(frozen=True)
class Task:
    """The function that Hydra calls for each job; picklable, for launchers with processes.

    `jobs` says what is each job's own, where a sweep knows its jobs beforehand.
    """

    command: str
    words: tuple[str, ...]
    jobs: tuple[str, ...] = ()

    def __call__(self, cfg: DictConfig) -> Any:
        if self.jobs:
            announce(int(HydraConfig.get().job.num), self.jobs)
        module = commands.load(self.command)
        try:
            return module.run(cfg, list(self.words)) if self.words else module.run(cfg)
        except AgenticRLError as error:
            return self._failed(str(error), bug=False)
        except Exception as error:
            traceback.print_exc()
            return self._failed(f"{type(error).__name__}: {error}", bug=True)

    @staticmethod
    def _failed(line: str, *, bug: bool) -> Failure:
        job = commands.Job.current()
        _remove_empty(job.folder)
        return Failure(tuple(job.overrides), " ".join(line.split()), bug)


def run(command: str, argv: Sequence[str]) -> int:
    """The exit status of `agentic-rl COMMAND argv`, argv holding overrides, flags and words."""
    parser = _parser(command)
    args = parser.parse_intermixed_args(list(argv))
    module = commands.load(command)
    words, overrides = _split_words(args.overrides)
    for late in set(overrides) & set(commands.names()):
        raise UsageError(f"the command comes first: `agentic-rl {late} key=value ...`")
    _check_words(command, module, words)
    path = compose.search_path(args.config_dir)
    hydra = _Hydra.create_main_hydra2(task_name=command, config_search_path=path)
    try:
        line = _Line(command, module, args, tuple(words), tuple(overrides))
        return _show(hydra, line, parser) if _only_shows(args) else _launch(hydra, line)
    finally:
        GlobalHydra.instance().clear()


@dataclass(frozen=True)
class _Line:
    """A parsed command line."""

    command: str
    module: ModuleType
    args: argparse.Namespace
    words: tuple[str, ...]
    overrides: tuple[str, ...]

    @property
    def primary(self) -> str:
        return str(self.args.config_name or self.module.PRIMARY)

    @property
    def multirun(self) -> bool:
        return bool(self.args.multirun or getattr(self.module, "MULTIRUN", False))


class _Hydra(Hydra):
    """Hydra, whose configuration names its recipe, so that `--cfg` shows what a run saves."""

    def compose_config(self, *args: Any, **kwargs: Any) -> DictConfig:
        cfg = super().compose_config(*args, **kwargs)
        compose.name_recipe(cfg)
        return cfg


class _Parser(argparse.ArgumentParser):
    """argparse's usage lines and exit become one line."""

    def error(self, message: str) -> NoReturn:
        flags = sorted(self._option_string_actions)
        unknown = message.rpartition("unrecognized arguments: ")[2].split(" ")[0].split("=")[0]
        if "unrecognized" in message:
            message = f"unknown flag '{unknown}'.{did_you_mean(unknown, flags)}"
        raise UsageError(f"{message} See `{self.prog} --help`.")


def _parser(command: str) -> _Parser:
    """Hydra's own flags, without the one that loads a pickle and without --config-path."""
    parser = _Parser(prog=f"agentic-rl {command}", add_help=False)
    add = parser.add_argument
    add("--help", "-h", action="store_true", help="This command's configuration and options")
    add("--hydra-help", action="store_true", help="Hydra's help")
    add("--cfg", "-c", choices=["job", "hydra", "all"], help="Show the configuration; run nothing")
    add("--resolve", action="store_true", help="With --cfg: interpolations resolved")
    add("--package", "-p", help="With --cfg: this part only")
    add("--run", "-r", action="store_true", help="One job")
    add("--multirun", "-m", action="store_true", help="One job for every combination of values")
    add("--shell-completion", "-sc", action="store_true", help="install=bash, fish or zsh")
    add("--config-name", "-cn", help="Another primary config, such as a run's `resolved`")
    add("--config-dir", "-cd", help="One more folder of configs, such as a run folder")
    add("--info", "-i", const="all", nargs="?", choices=_INFO, help="What Hydra found")
    add("overrides", nargs="*", help="key=value, +recipe=NAME")
    return parser


def _split_words(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Leading words that hold no `=` are the command's own."""
    count = 0
    while count < len(overrides) and is_word(overrides[count]):
        count += 1
    return list(overrides[:count]), list(overrides[count:])


def is_word(text: str) -> bool:
    return "=" not in text and not text.startswith(("~", "-"))


def _check_words(command: str, module: ModuleType, words: Sequence[str]) -> None:
    expected = str(getattr(module, "WORDS", "")).split()
    if words and not expected:
        hint = f"See `agentic-rl {command} --help`."
        if words[0] in recipe_names():
            hint = f"A recipe is named with a plus sign: +recipe={words[0]}"
        raise UsageError(f"`agentic-rl {command}` takes key=value, not '{words[0]}'. {hint}")
    if len(words) != len(expected):
        raise UsageError(f"type `agentic-rl {command} {' '.join(expected)} [key=value ...]`")


def _only_shows(args: argparse.Namespace) -> bool:
    return bool(args.help or args.hydra_help or args.cfg or args.info or args.shell_completion)


def _show(hydra: Hydra, line: _Line, parser: argparse.ArgumentParser) -> int:
    args = line.args
    args.overrides = list(line.overrides)
    if args.shell_completion:
        hydra.shell_completion(config_name=line.primary, overrides=args.overrides)
        return 0
    _load(hydra, line, RunMode.RUN)
    if args.help:
        print(getattr(line.module, "ABOUT", "") or f"{line.module.HELP}\n")
        hydra.app_help(config_name=line.primary, args_parser=parser, args=args)
    elif args.hydra_help:
        hydra.hydra_help(config_name=line.primary, args_parser=parser, args=args)
    elif args.cfg:
        hydra.show_cfg(
            config_name=line.primary,
            overrides=args.overrides,
            cfg_type=args.cfg,
            package=args.package,
            resolve=args.resolve,
        )
    else:
        hydra.show_info(args.info, config_name=line.primary, overrides=args.overrides)
    return 0


def _launch(hydra: Hydra, line: _Line) -> int:
    multirun = line.multirun
    cfg = _load(hydra, line, RunMode.MULTIRUN if multirun else RunMode.RUN)
    multirun = multirun or cfg.hydra.mode is RunMode.MULTIRUN
    _check_folder(cfg, "hydra.sweep.dir" if multirun else "hydra.run.dir")
    task = Task(line.command, line.words)
    if multirun:
        task = replace(task, jobs=job_labels(_check_jobs(hydra, line, cfg)))
    else:
        Experiment.from_cfg(compose.without_hydra(cfg))
    overrides = [*line.overrides, f"hydra.mode={'MULTIRUN' if multirun else 'RUN'}"]
    try:
        if multirun:
            return _say_end(hydra.multirun(line.primary, task, overrides))
        return _say_failure(hydra.run(line.primary, task, overrides))
    except OSError as error:  # of Hydra, which makes the folder: a job's own come back as failures
        raise RunFolderError(
            f"{error.filename} cannot be a run folder: {error.strerror}"
        ) from error


def _check_folder(cfg: DictConfig, key: str) -> None:
    if not str(OmegaConf.select(cfg, key) or "").strip():
        raise ConfigError(f"{key} is empty: name a folder for the run")


def _load(hydra: Hydra, line: _Line, mode: RunMode) -> DictConfig:
    loader = hydra.config_loader
    assert isinstance(loader, ConfigLoaderImpl)
    cfg = compose.load(loader, line.primary, line.overrides, mode=mode, command=line.command)
    params = OmegaConf.select(cfg, "hydra.sweeper.params")
    single = mode is RunMode.RUN and cfg.hydra.mode is not RunMode.MULTIRUN
    if params and single and not _only_shows(line.args):
        raise ConfigError(
            f"the recipe lists several values of {', '.join(params)}:"
            f" type `agentic-rl sweep {' '.join(line.overrides)}`"
        )
    return cfg


def _check_jobs(hydra: Hydra, line: _Line, cfg: DictConfig) -> list[list[str]]:
    """Composes every job and checks its keys, types and values before the first one starts.

    The overrides of each job; none where another sweeper chooses them as it goes.
    """
    if cfg.hydra.runtime.choices.get("hydra/sweeper") != "basic":
        return []
    loader = hydra.config_loader
    assert isinstance(loader, ConfigLoaderImpl)
    params = [f"{key}={value}" for key, value in (cfg.hydra.sweeper.params or {}).items()]
    jobs = _split_jobs(loader, [*params, *cfg.hydra.overrides.task])
    fixed = list(cfg.hydra.overrides.hydra)
    for job in jobs:
        found = compose.load(loader, line.primary, [*fixed, *job], command=line.command)
        Experiment.from_cfg(compose.without_hydra(found))
    return jobs


def job_labels(jobs: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What each job of a sweep has typed that not all have."""
    shared = set[str]().union(*jobs).intersection(*jobs)
    return tuple(" ".join([word for word in job if word not in shared] or job) for job in jobs)


def announce(number: int, labels: Sequence[str]) -> None:
    """Before a job of a sweep: which it is; `number` counts from 0, as the folders do."""
    print(f"job {number + 1} of {len(labels)}: {labels[number]}", file=sys.stderr, flush=True)


def say_next(count: int, sweep: Path) -> None:
    """After a sweep without failures: what to type now."""
    jobs = "1 job" if count == 1 else f"{count} jobs"
    print(f"{jobs} finished; next: agentic-rl compare {short(sweep)}", file=sys.stderr)


def sweep_jobs(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each job of a sweep, in the order of the jobs' numbers."""
    return _split_jobs(compose.open_loader(), overrides)


def _split_jobs(loader: ConfigLoaderImpl, overrides: Sequence[str]) -> list[list[str]]:
    typed = OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))
    (jobs,) = BasicSweeper.split_arguments(typed, None)
    return [list(job) for job in jobs]


def _say_failure(result: JobReturn) -> int:
    failure = result.return_value
    if not isinstance(failure, Failure):
        return 0
    if not failure.bug:
        print(failure.line, file=sys.stderr)
    return 1


def _say_end(results: Any) -> int:
    """At the end of a sweep: what to type next, or which jobs failed."""
    returned = [job for batch in results or () for job in batch if isinstance(job, JobReturn)]
    known = [(job, job.hydra_cfg.hydra) for job in returned if job.hydra_cfg is not None]
    if any(isinstance(job.return_value, Failure) for job, _ in known):
        _say_failures(returned)
        return 1
    sweep = _sweep_of(Path(known[0][1].runtime.output_dir)) if known else None
    if sweep is not None:
        say_next(len(returned), sweep)
    return 0


def _say_failures(returned: Sequence[JobReturn]) -> None:
    """Which jobs failed, with what was theirs and one line each."""
    failed = [
        (job.hydra_cfg.hydra, job.return_value)
        for job in returned
        if job.hydra_cfg is not None and isinstance(job.return_value, Failure)
    ]
    lines = {failure.line for _, failure in failed}
    count = f"{len(failed)} of {len(returned)} jobs failed"
    job_folder = Path(failed[0][0].runtime.output_dir)
    if len(lines) == 1 and len(failed) == len(returned):
        print(f"{count}: {lines.pop()}", file=sys.stderr)
        _remove_unused(job_folder)
        return
    print(f"{count}:", file=sys.stderr)
    shared = set.intersection(*(set(each.overrides or ()) for each in returned))
    for hydra, failure in failed:
        typed = " ".join(word for word in failure.overrides if word not in shared)
        job = f"job {hydra.job.num + 1} of {len(returned)}"
        print(f"  {job} ({typed}): {failure.line}", file=sys.stderr)
    sweep = _sweep_of(job_folder)
    if sweep is not None:
        print(f"Run these again with: agentic-rl resume {short(sweep)}", file=sys.stderr)


def _sweep_of(job: Path) -> Path | None:
    return next((path for path in job.parents if (path / "multirun.yaml").is_file()), None)


def _remove_unused(job: Path) -> None:
    """The folder of a sweep, above `job`, in which no job has written anything."""
    folder = _sweep_of(job)
    if folder is not None and len(list(folder.iterdir())) == 1:
        (folder / "multirun.yaml").unlink()
        _remove_empty(folder)


def _remove_empty(folder: Path) -> None:
    """Hydra makes a job's folder before the job; one that nothing was written to goes again."""
    for path in (folder, *folder.parents):
        if path == Path.cwd() or not path.is_dir() or any(path.iterdir()):
            return
        path.rmdir()
