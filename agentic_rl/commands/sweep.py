"""`agentic-rl sweep lr=0.01,0.02`: one training run for every combination of values."""

from agentic_rl.commands.train import PRIMARY, run

HELP = "train every combination: agentic-rl sweep +recipe=alfworld_grpo lr=0.01,0.02"
HYDRA = True
MULTIRUN = True

__all__ = ["HELP", "HYDRA", "MULTIRUN", "PRIMARY", "run"]
