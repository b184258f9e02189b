"""Losses: what an update minimises, token by token."""

from agentic_rl.interfaces import Loss
from agentic_rl.registry import Registry

losses: Registry[Loss] = Registry("loss", __name__)
