"""A log-linear policy over candidate commands, with real tokens and exact gradients."""

from agentic_rl.backend.linear.backend import LinearBackend

__all__ = ["LinearBackend"]
