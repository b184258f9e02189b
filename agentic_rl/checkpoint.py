"""Finds what `checkpoint=` names, and the experiment that belongs to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rl.config import FAMILIES, Experiment
from agentic_rl.errors import ConfigError, RunFolderError
from agentic_rl.results.checkpoints import SavedCheckpoint, read_checkpoints
from agentic_rl.results.reader import table_rows
from agentic_rl.results.writer import CHECKPOINTS, CONFIG
from agentic_rl.training import Checkpoint, Usage

if TYPE_CHECKING:
    from omegaconf import DictConfig


def find(address: str) -> SavedCheckpoint:
    """A checkpoint folder, a run folder (its last checkpoint), or a remote address."""
    if "://" in address:
        name = address.rstrip("/").rpartition("/")[2]
        return SavedCheckpoint(_update_in(name), Checkpoint(name, address, address), {})
    path = Path(address)
    if (path / "run.json").is_file():
        found = last(path)
        if found is None:
            raise RunFolderError(f"{path} holds no finished checkpoint yet")
        return found
    if path.parent.name == CHECKPOINTS and path.is_dir():
        for saved in read_checkpoints(path.parent.parent):
            if saved.checkpoint.name == path.name:
                return saved
        raise RunFolderError(f"{path} is not a finished checkpoint of its run")
    raise RunFolderError(
        f"checkpoint={address} is no run folder and no checkpoint folder: give one like"
        " outputs/DATE/TIME or outputs/DATE/TIME/checkpoints/update-80"
    )


def last(folder: Path) -> SavedCheckpoint | None:
    saved = read_checkpoints(folder)
    return saved[-1] if saved else None


def spent(saved: SavedCheckpoint) -> Usage:
    """What the run had used when the checkpoint was saved."""
    kinds = ("prefill", "cached", "sampled", "trained")
    return Usage(**{kind: int(saved.metrics.get(f"spent_{kind}") or 0) for kind in kinds})


def used(folder: Path) -> Usage:
    """What the run has paid for so far, as far as its rows tell."""
    saved = last(folder)
    return _since(folder, None) if saved is None else spent(saved) + _since(folder, saved)


def _since(folder: Path, saved: SavedCheckpoint | None) -> Usage:
    """Paid after the checkpoint, be it that its rows are cut away when the run goes on."""
    update = -1 if saved is None else saved.update
    counted = saved is not None and saved.metrics.get("spent_evaluation")
    first = update + 1 if counted else update
    rows = [row for row in table_rows(folder, "updates") if row["update"] > update]
    rows += [
        row
        for row in table_rows(folder, "episodes")
        if row["phase"] == "evaluation" and row["update"] >= first
    ]
    kinds = ("prefill", "cached", "sampled", "trained")
    return Usage(**{kind: sum(row.get(f"tokens_{kind}") or 0 for row in rows) for kind in kinds})


def experiment_of(folder: Path) -> Experiment:
    """The configuration that a run wrote when it began."""
    return Experiment.from_cfg(_config(folder))


def experiment_for_eval(
    cfg: "DictConfig", recipe: str | None, overrides: Sequence[str]
) -> Experiment:
    """The checkpoint's own configuration under the keys that were typed.

    Without a checkpoint, and for a remote one, the composed configuration of the named recipe.
    """
    from omegaconf import OmegaConf

    address = OmegaConf.select(cfg, "checkpoint")
    if address is None and recipe is None:
        raise ConfigError(
            "eval needs a checkpoint or a recipe: agentic-rl eval checkpoint=RUN,"
            " or agentic-rl eval +recipe=NAME for its base weights"
        )
    if address is not None and "://" not in str(address):
        if recipe is not None:
            raise ConfigError("a local checkpoint brings its own recipe: leave +recipe out")
        find(str(address))
        merged = _lay(_config(_run_folder(Path(str(address)))), cfg, overrides)
        experiment = Experiment.from_cfg(merged)
    else:
        if recipe is None:
            raise ConfigError(
                f"a remote checkpoint needs its recipe: agentic-rl eval +recipe=NAME"
                f" checkpoint={address}"
            )
        experiment = Experiment.from_cfg(cfg)
        experiment.recipe = recipe
    experiment.command = "eval"
    experiment.evaluation.splits = _splits(experiment)
    experiment.split = None
    return experiment


def _splits(experiment: Experiment) -> list[str]:
    asked = experiment.split
    if asked is None:
        return list(experiment.evaluation.splits)
    if asked == "all":
        return ["valid_seen", "valid_unseen"]
    if isinstance(asked, str):
        return asked.split(",")
    if isinstance(asked, Sequence) and asked and all(isinstance(name, str) for name in asked):
        return list(asked)
    raise ConfigError(f"split={asked} is not a split, a list of splits, or all")


def _run_folder(path: Path) -> Path:
    return path if (path / "run.json").is_file() else path.parent.parent


def _config(folder: Path) -> "DictConfig":
    import yaml  # type: ignore[import-untyped]
    from omegaconf import DictConfig, OmegaConf

    file = folder / CONFIG
    if not file.is_file():
        if (folder / "run.json").is_file():
            raise RunFolderError(
                f"{folder} holds no {CONFIG}: its run ended before it began;"
                " start it again with overwrite=true"
            )
        raise RunFolderError(f"{folder} holds no {CONFIG}: is it a run folder?")
    try:
        config = OmegaConf.load(file)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RunFolderError(f"{file} cannot be read: {error}") from error
    if not isinstance(config, DictConfig):
        raise RunFolderError(f"{file} is no configuration: it holds a list")
    return config


def _lay(saved: "DictConfig", cfg: "DictConfig", overrides: Sequence[str]) -> "DictConfig":
    """`saved` under the typed keys; a group choice brings its whole node."""
    from omegaconf import OmegaConf, open_dict

    with open_dict(saved):
        for override in overrides:
            key = _key(override)
            value: Any = OmegaConf.select(cfg, key)
            OmegaConf.update(saved, key, value, merge=False, force_add=True)
            if key in FAMILIES:
                saved[key] = cfg[key]
    return saved


def _key(override: str) -> str:
    key, equals, _ = override.partition("=")
    if override.startswith("~") or not equals:
        raise ConfigError(f"eval takes key=value, not '{override}'")
    return key.lstrip("+").replace("/", ".").partition("@")[0]


def _update_in(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
