"""What generated code calls: copies on write, memos, lists in words."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.expressions import Entity, TextExpression

Operator: TypeAlias = tuple[int, ...]
"""An action's number and its arguments."""
Commands: TypeAlias = dict[str, Operator]
Pairs: TypeAlias = dict[Any, tuple[Any, ...]]
State: TypeAlias = tuple[Any, ...]
"""One value a slot, never changed, and last a hash of all facts in it."""

MOST_COMMANDS = 200_000


def with_pair(table: Pairs, key: Any, value: Any) -> Pairs:
    """The table with one more pair; the very same one where it holds it already."""
    values = table.get(key)
    if values is None:
        return {**table, key: (value,)}
    if value in values:
        return table
    return {**table, key: tuple(sorted((*values, value)))}


def without_pair(table: Pairs, key: Any, value: Any) -> Pairs:
    """The table without a pair; the very same one where it does not hold it."""
    values = table.get(key)
    if values is None or value not in values:
        return table
    table = table.copy()
    if len(values) == 1:
        del table[key]
    else:
        table[key] = tuple([other for other in values if other != value])
    return table


def listed(words: Sequence[str], empty: str, separator: str, last_separator: str) -> str:
    """`a, b and c` with the grammar's own separators."""
    if len(words) > 1:
        return separator.join(words[:-1]) + last_separator + words[-1]
    return words[0] if words else empty


class Words(dict[Any, str]):
    """The text of an expression, by the objects that it reads."""

    def __init__(self, expression: TextExpression, entities: Mapping[int, Entity]) -> None:
        super().__init__()
        self._expression = expression
        self._entities = entities

    def __missing__(self, key: Any) -> str:
        names = self._expression.names
        numbers = key if len(names) != 1 else (key,)
        try:
            objects = {name: self._entities[n] for name, n in zip(names, numbers, strict=True)}
        except KeyError:
            raise UnsupportedGame("a text about an object that no fact names") from None
        text = self[key] = self._expression(objects)
        return text


class CommandTexts(dict[Operator, str]):
    """The command of an operator."""

    def __init__(self, functions: Sequence[Callable[..., str]]) -> None:
        super().__init__()
        self._functions = functions

    def __missing__(self, operator: Operator) -> str:
        if len(self) >= MOST_COMMANDS:
            raise UnsupportedGame(f"a game of more than {MOST_COMMANDS} commands")
        text = self[operator] = self._functions[operator[0]](*operator)
        if "{" in text or "}" in text:
            raise UnsupportedGame("braces in a command, which TextWorld would format")
        return text


class Block(dict[Any, Commands]):
    """The commands that follow, by static facts alone, from the variables bound so far."""

    def __init__(self, function: Callable[..., Commands]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Commands:
        found = self._function(*key) if type(key) is tuple else self._function(key)
        block = self[key] = {command: found[command] for command in sorted(found)}
        return block


class FactHashes(dict[tuple[int, ...], int]):
    """64 bits for a fact; a state's hash is the exclusive or over its facts."""

    def __init__(self, relations: Sequence[str], ids: Sequence[str]) -> None:
        super().__init__()
        self._relations = relations
        self._ids = ids

    def __missing__(self, key: tuple[int, ...]) -> int:
        relation, *objects = key
        parts = [self._relations[relation], *(self._ids[number] for number in objects)]
        digest = blake2b("\0".join(parts).encode(), digest_size=8).digest()
        value = self[key] = int.from_bytes(digest, "big")
        return value
