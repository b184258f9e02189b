"""Advantage estimators: what each step is credited with."""

from agentic_rl.interfaces import Advantage
from agentic_rl.registry import Registry

advantages: Registry[Advantage] = Registry("advantage", __name__)
