"""Commands, one module each, found by their file names.

A command module holds `HELP`, one line, and either
`main(argv) -> int`, where `HYDRA` is False, or
`run(cfg) -> None`, where `HYDRA` is True, with `PRIMARY`, the name of its primary config.
Optional beside `run`: `ABOUT`, the lines that begin its `--help`, `MULTIRUN = True`, and
`WORDS = "RUN"`, which makes it `run(cfg, words)`.
Heavy imports stay inside functions: `agentic-rl --help` imports every module here.
"""

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType


def names() -> list[str]:
    """Every command, sorted; nothing is imported."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in found if not name.startswith("_"))


def load(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


@dataclass(frozen=True)
class Job:
    """What Hydra knows of the job that is running."""

    recipe: str | None
    overrides: list[str]
    folder: Path
    multirun: bool

    @classmethod
    def current(cls) -> "Job":
        from hydra.core.hydra_config import HydraConfig
        from hydra.types import RunMode

        from agentic_rl.compose import chosen_recipe

        hydra = HydraConfig.get()
        overrides = [str(override) for override in hydra.overrides.task]
        return cls(
            recipe=chosen_recipe(hydra),
            overrides=overrides,
            folder=Path(hydra.runtime.output_dir),
            multirun=hydra.mode is RunMode.MULTIRUN,
        )
