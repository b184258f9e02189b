"""`agentic-rl sweep lr=0.01,0.02`: one training run for every combination of values."""

from agentic_rl.commands.train import PRIMARY, run

HELP = "train every combination: agentic-rl sweep +recipe=alfworld_grpo lr=0.01,0.02"
ABOUT = """\
Trains once for every combination of the values, each into its own folder below the sweep's.

  agentic-rl sweep +recipe=debug lr=0.01,0.05 group_size=4,8       # four jobs, one by one
  agentic-rl sweep +recipe=debug 'seed=range(0,5)'                 # seeds 0 to 4
  agentic-rl sweep +recipe=debug lr=0.01,0.05 hydra/launcher=joblib hydra.launcher.n_jobs=2

Launchers that run jobs at the same time: joblib, submitit_local, submitit_slurm and ray, from
the extras [joblib], [submitit] and [ray]. `agentic-rl resume SWEEP` runs what is missing.
"""
HYDRA = True
MULTIRUN = True

__all__ = ["ABOUT", "HELP", "HYDRA", "MULTIRUN", "PRIMARY", "run"]
