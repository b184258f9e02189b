"""Prompt protocols: how a game is put into words and how a reply is read."""

from agentic_rl.interfaces import PromptProtocol
from agentic_rl.registry import Registry

protocols: Registry[PromptProtocol] = Registry("protocol", __name__)
