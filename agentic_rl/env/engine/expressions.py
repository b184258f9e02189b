"""The expressions of a grammar, `{r.name}`: a few fields of the objects at hand, and nothing else.

TextWorld gives them to Python's `eval`. Here they are read as syntax trees, everything but names,
a fixed list of fields, plain strings, `+` and `or` is refused, and what is left is interpreted.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from agentic_rl.env.engine.errors import UnsafeGame

MOST_CHARACTERS = 200
FIELDS = frozenset(("id", "type", "name", "definite", "indefinite"))
"""The fields of TextWorld's EntityInfo that are text in a PDDL game."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An object of a game as its texts see it."""

    id: str
    type: str
    name: str
    definite: str = "the"
    indefinite: str = "a"

    def __str__(self) -> str:
        return self.name


class TextExpression:
    """A checked expression; `names` are the objects it reads, in order of appearance."""

    def __init__(self, source: str) -> None:
        self.source = source.strip()
        self._tree = _checked(source)
        names = [node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)]
        self.names: tuple[str, ...] = tuple(dict.fromkeys(names))

    def __call__(self, objects: Mapping[str, Entity]) -> str:
        return str(_value(self._tree, objects))


def _checked(source: str) -> ast.expr:
    source = source.strip()
    if len(source) > MOST_CHARACTERS:
        raise UnsafeGame(f"a text expression of {len(source)} characters")
    if "\\" in source:
        raise UnsafeGame(f"{{{source}}} has a backslash")
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsafeGame(f"{{{source}}} is no text expression") from error
    for node in _expressions(tree):
        if not _harmless(node):
            raise UnsafeGame(f"{{{source}}} asks for more than the text of an object")
    return tree


def _expressions(tree: ast.expr) -> list[ast.expr]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.expr)]


def _harmless(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name):
            return not name.startswith("_")
        case ast.Attribute(value=ast.Name(), attr=field):
            return field in FIELDS
        case ast.Constant(value=str(text)):
            return "{" not in text and "}" not in text
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return not isinstance(left, ast.Name) and not isinstance(right, ast.Name)
        case ast.BoolOp(op=ast.Or()):
            return True
    return False


def _value(node: ast.expr, objects: Mapping[str, Entity]) -> str | Entity:
    match node:
        case ast.Name(id=name):
            return objects[name]
        case ast.Attribute(value=ast.Name(id=name), attr=field):
            return str(getattr(objects[name], field))
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, right=right):
            return str(_value(left, objects)) + str(_value(right, objects))
        case ast.BoolOp(values=values):
            for value in values[:-1]:
                read = _value(value, objects)
                if read != "":
                    return read
            return _value(values[-1], objects)
    raise AssertionError(f"unchecked {ast.dump(node)}")
