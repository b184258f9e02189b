"""`agentic-rl eval checkpoint=PATH`: score weights on listed games."""

from typing import TYPE_CHECKING

from agentic_rl.commands import Job

if TYPE_CHECKING:
    from omegaconf import DictConfig

HELP = "score a checkpoint: agentic-rl eval checkpoint=RUN [split=valid_seen]"
ABOUT = """\
Plays listed games with fixed weights and writes the scores to a run folder.

  agentic-rl eval checkpoint=outputs/DATE/TIME split=all    # a run's last checkpoint
  agentic-rl eval checkpoint=outputs/DATE/TIME/checkpoints/update-40 evaluation.repeats=4
  agentic-rl eval +recipe=alfworld_grpo split=valid_seen    # a recipe's base weights
"""
HYDRA = True
PRIMARY = "eval"


def run(cfg: "DictConfig") -> None:
    from agentic_rl.runner import eval_command

    job = Job.current()
    eval_command(
        cfg,
        recipe=job.recipe,
        overrides=job.overrides,
        folder=job.folder,
        multirun=job.multirun,
    )
