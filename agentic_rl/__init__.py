"""agentic-rl: a declarative experiment framework for agentic reinforcement learning on ALFWorld."""

__version__ = "0.1.0"
