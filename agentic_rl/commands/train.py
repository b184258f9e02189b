"""`agentic-rl [train] +recipe=NAME`: one training run."""

import sys
from typing import TYPE_CHECKING

from agentic_rl.commands import Job

if TYPE_CHECKING:
    from omegaconf import DictConfig

HELP = "(default) train a recipe: agentic-rl +recipe=alfworld_grpo"
ABOUT = """\
Trains a policy on a recipe's games, scores it as it goes and writes a run folder.

  agentic-rl +recipe=debug                         # a first look; `train` may be left out
  agentic-rl +recipe=alfworld_grpo updates=40 seed=1 hydra.run.dir=outputs/mine
  agentic-rl train +recipe=alfworld_grpo --cfg job # show the configuration; run nothing
"""
HYDRA = True
PRIMARY = "train"

NO_RECIPE = "no recipe named: the defaults of conf/base.yaml"


def run(cfg: "DictConfig") -> None:
    from agentic_rl.runner import train_command

    job = Job.current()
    _say_defaults(job)
    train_command(
        cfg,
        recipe=job.recipe,
        overrides=job.overrides,
        folder=job.folder,
        multirun=job.multirun,
    )


def _say_defaults(job: Job) -> None:
    """A forgotten recipe shows only here: the defaults are a whole experiment too."""
    from hydra.core.hydra_config import HydraConfig

    hydra = HydraConfig.get().job
    first = not job.multirun or int(hydra.num) == 0
    if job.recipe is None and hydra.config_name == PRIMARY and first:
        print(NO_RECIPE, file=sys.stderr, flush=True)
