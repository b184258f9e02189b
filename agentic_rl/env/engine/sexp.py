"""Reading Lisp-like text as Fast Downward reads it: comments dropped, everything in lower case."""

import re
from collections.abc import Sequence
from typing import TypeAlias

from agentic_rl.env.engine.errors import UnsupportedGame

Tree: TypeAlias = "str | list[Tree]"

MOST_CHARACTERS = 4_000_000
MOST_NESTING = 60

_COMMENT = re.compile(r";[^\n]*")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_WORD = re.compile(r"[a-z0-9_@.,+\-]+")


def clean(text: str) -> str:
    """Without comments, in lower case; only ASCII of a bounded size is taken."""
    if len(text) > MOST_CHARACTERS:
        raise UnsupportedGame(f"a PDDL text of {len(text)} characters")
    if not text.isascii():
        raise UnsupportedGame("a PDDL text that is not ASCII")
    return (_COMMENT.sub("", text) if ";" in text else text).lower()


def read(text: str) -> list[Tree]:
    """All forms of a text."""
    stack: list[list[Tree]] = [[]]
    for token in _TOKEN.findall(clean(text).replace("?", " ?")):
        if token == "(":
            stack.append([])
            if len(stack) > MOST_NESTING:
                raise UnsupportedGame("PDDL nested too deeply")
        elif token == ")":
            done = stack.pop()
            if not stack:
                raise UnsupportedGame("a closing parenthesis too many")
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1:
        raise UnsupportedGame("a closing parenthesis is missing")
    return stack[0]


def word(tree: Tree) -> str:
    """A plain identifier: anything else is refused, and reaches nothing further."""
    if not isinstance(tree, str) or not _WORD.fullmatch(tree):
        raise UnsupportedGame(f"{_short(tree)} where PDDL has a name")
    return tree


def branch(tree: Tree) -> list[Tree]:
    if isinstance(tree, str):
        raise UnsupportedGame(f"{_short(tree)} where PDDL has a list")
    return tree


def head(tree: Tree) -> str:
    """The first word of a list."""
    items = branch(tree)
    if not items or not isinstance(items[0], str):
        raise UnsupportedGame(f"{_short(tree)} where PDDL has a form")
    return items[0]


def typed_list(items: Sequence[Tree]) -> list[tuple[str, str]]:
    """`a b - t c` gives (a, t), (b, t), (c, object); a variable keeps its question mark."""
    found: list[tuple[str, str]] = []
    pending: list[str] = []
    rest = iter(items)
    for item in rest:
        if item == "-":
            kind = word(next(rest, []))
            found += [(name, kind) for name in pending]
            pending = []
        elif isinstance(item, str) and item.startswith("?"):
            pending.append("?" + word(item[1:]))
        else:
            pending.append(word(item))
    return found + [(name, "object") for name in pending]


def _short(tree: Tree) -> str:
    return repr(tree)[:60]
