"""A plug-in for agentic-rl."""
