"""A compiled engine for TextWorld's PDDL games.

A game file is read once; its domain, grammar and goal become Python code that plays from tables,
byte for byte as TextWorld's PddlEnv does. States are values: a branch costs a reference.
What it cannot reproduce it refuses with `UnsupportedGame`. `load_game(path).source` (of
`agentic_rl.env.alfworld`) shows the code that plays a game.
"""

from agentic_rl.env.engine.errors import UnsafeGame, UnsupportedGame
from agentic_rl.env.engine.game import Game, GameFile, parse_file, read_file
from agentic_rl.env.engine.world import Move, Node, World

__all__ = [
    "Game",
    "GameFile",
    "Move",
    "Node",
    "UnsafeGame",
    "UnsupportedGame",
    "World",
    "parse_file",
    "read_file",
]
