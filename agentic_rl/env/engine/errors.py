"""Why a game is not played."""

from agentic_rl.errors import EnvError


class UnsupportedGame(EnvError):
    """The engine cannot reproduce this game exactly; the text says why. TextWorld may play it."""


class UnsafeGame(UnsupportedGame):
    """The file asks for more than a game may, so no engine is given it."""
