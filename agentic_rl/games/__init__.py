"""Games: where they come from and which are kept."""

from agentic_rl.interfaces import Games
from agentic_rl.registry import Registry

games_sources: Registry[Games] = Registry("games", __name__)
