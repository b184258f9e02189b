"""The configuration a command would run with, composed in this process and touching nothing."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.utils import setup_globals
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, flag_override
from omegaconf.errors import OmegaConfBaseException

from agentic_rl import searchpath, slips
from agentic_rl.config import FAMILIES, Experiment
from agentic_rl.errors import ConfigError

SLIPS = (HydraException, OmegaConfBaseException, yaml.YAMLError, OSError, ValueError, UserWarning)
"""What composing raises for a mistake in what was typed or in a YAML file."""


def compose(
    primary: str, overrides: Sequence[str] = (), *, config_dir: str | None = None
) -> DictConfig:
    """What `agentic-rl COMMAND overrides --cfg job` shows; ConfigError, one line, for a slip.

    `primary` is the command's primary config, such as `train`. Interpolations are kept.
    """
    loader = open_loader(config_dir)
    return without_hydra(load(loader, primary, overrides))


def open_loader(config_dir: str | None = None) -> ConfigLoaderImpl:
    """A loader over our search path, and over one more folder of configs where it is given."""
    return ConfigLoaderImpl(config_search_path=search_path(config_dir))


def search_path(config_dir: str | None = None) -> ConfigSearchPath:
    """Also readies Hydra in this process: resolvers, plug-ins and the schema."""
    version.setbase("1.3")
    setup_globals()
    searchpath.register()
    ConfigStore.instance().store(name="experiment_schema", node=Experiment, provider="agentic_rl")
    path = create_config_search_path(str(searchpath.data_dir("conf")))
    if config_dir is not None:
        folder = Path(config_dir).absolute()
        if not folder.is_dir():
            raise ConfigError(f"--config-dir {config_dir}: there is no such folder")
        entries = path.get_path()
        path.append(provider="--config-dir", path=f"file://{folder}")
        entries.insert(-1, entries.pop())  # Hydra wants its schemas last
    return path


def load(
    loader: ConfigLoaderImpl,
    primary: str,
    overrides: Sequence[str],
    *,
    mode: RunMode = RunMode.RUN,
    command: str = "",
) -> DictConfig:
    """Composes with Hydra's own block; every slip becomes a ConfigError of one line."""
    line = slips.Line(command=command, overrides=tuple(overrides), loader=loader)
    try:
        slips.check(line)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".* is not available")  # a folder to search
            cfg = loader.load_configuration(primary, list(overrides), run_mode=mode)
    except SLIPS as error:
        raise ConfigError(slips.word(error, line)) from error
    _refuse_clashes(loader, cfg.hydra.runtime.choices)
    name_recipe(cfg)
    return cfg


def name_recipe(cfg: DictConfig) -> None:
    """Fills in `recipe` with what `+recipe=` chose, as a run's resolved.yaml has it."""
    name = chosen_recipe(cfg.hydra)
    if name and "recipe" in cfg:
        with flag_override(cfg, ["struct", "readonly"], [False, False]):
            cfg.recipe = name


def chosen_recipe(hydra: Any) -> str | None:
    """`a`, and `a+b` for `+recipe=[a,b]`, which Hydra does not count among its choices."""
    choice = hydra.runtime.choices.get("recipe")
    if choice:
        return str(choice)
    typed = [str(word) for word in hydra.overrides.task]
    lists = [word.partition("=")[2] for word in typed if word.startswith("+recipe=[")]
    return "+".join(name.strip() for name in lists[0].strip("[]").split(",")) if lists else None


def without_hydra(cfg: DictConfig) -> DictConfig:
    with flag_override(cfg, ["struct", "readonly"], [False, False]):
        cfg.pop("hydra", None)
    return cfg


def _refuse_clashes(loader: ConfigLoaderImpl, choices: Any) -> None:
    """Two different option files of one name: which one was meant cannot be known."""
    for family in FAMILIES:
        chosen = choices.get(family)
        if not isinstance(chosen, str):
            continue
        providers: dict[str, str] = {}
        for source in loader.get_sources():
            file = Path(source.path, family, f"{chosen}.yaml")
            if source.scheme() == "file" and file.is_file():
                providers.setdefault(file.read_text(encoding="utf-8"), str(file))
        if len(providers) > 1:
            ours, other = list(providers.values())[:2]
            raise ConfigError(
                f"two options are called {family}={chosen}: {ours} and {other}; rename one of them"
            )
