"""What no engine may be given, whether or not it could play it."""

import re

from agentic_rl.env.engine.errors import UnsafeGame, UnsupportedGame
from agentic_rl.env.engine.game import GameFile
from agentic_rl.env.engine.grammar import read_grammar
from agentic_rl.env.engine.sexp import MOST_CHARACTERS

MOST_NAME = 90
MOST_PARAMETERS = 10
"""Fast Downward copies an operator's name into 1,024 bytes."""

_LONG_WORD = re.compile(rf"[^\s()]{{{MOST_NAME + 1}}}")
_PARAMETERS = re.compile(r":parameters\s*\(([^()]*)\)", re.I)
_COMMENT = re.compile(r";[^\n]*")


def refuse_unsafe(file: GameFile) -> None:
    """Raises UnsafeGame for text that is more than text, and for sizes that no game has."""
    try:
        read_grammar(file.grammar)
    except UnsafeGame:
        raise
    except UnsupportedGame:
        pass  # TextWorld may read it; its expressions are checked again where they are used
    for text in (file.domain, file.problem):
        text = _COMMENT.sub("", text)
        if len(text) > MOST_CHARACTERS or _LONG_WORD.search(text):
            raise UnsafeGame("a PDDL text that is too long, or has too long a name")
        if any(found.count("?") > MOST_PARAMETERS for found in _PARAMETERS.findall(text)):
            raise UnsafeGame(f"an action of more than {MOST_PARAMETERS} parameters")
