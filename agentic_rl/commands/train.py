"""`agentic-rl [train] +recipe=NAME`: one training run."""

from typing import TYPE_CHECKING

from agentic_rl.commands import Job

if TYPE_CHECKING:
    from omegaconf import DictConfig

HELP = "(default) train a recipe: agentic-rl +recipe=alfworld_grpo"
HYDRA = True
PRIMARY = "train"


def run(cfg: "DictConfig") -> None:
    from agentic_rl.runner import train_command

    job = Job.current()
    train_command(
        cfg,
        recipe=job.recipe,
        overrides=job.overrides,
        folder=job.folder,
        multirun=job.multirun,
    )
