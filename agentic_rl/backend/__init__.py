"""Backends: policies that sample and learn."""

from agentic_rl.interfaces import Backend
from agentic_rl.registry import Registry

backends: Registry[Backend] = Registry("backend", __name__)
