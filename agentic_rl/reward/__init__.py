"""Rewards: a trajectory becomes one task reward and one penalty a step."""

from agentic_rl.interfaces import Reward
from agentic_rl.registry import Registry

rewards: Registry[Reward] = Registry("reward", __name__)
