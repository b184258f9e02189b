"""Trackers: mirrors of the metrics."""

from agentic_rl.interfaces import Tracker
from agentic_rl.registry import Registry

trackers: Registry[Tracker] = Registry("tracker", __name__)
