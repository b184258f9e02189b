"""Environments: what plays a game."""

from agentic_rl.interfaces import EnvPool
from agentic_rl.registry import Registry

envs: Registry[EnvPool] = Registry("env", __name__)
