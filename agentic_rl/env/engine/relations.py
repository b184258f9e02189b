"""How generated code reads facts: the tables of a game and the slots of a state.

A static predicate is a table of the game for each way in which it is read; a fluent is a slot of
the state for each way. Generated code names them by number, so nothing of a file is in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentic_rl.env.engine.csg import Query
from agentic_rl.env.engine.domain import Domain
from agentic_rl.env.engine.errors import UnsupportedGame

MOST_NAMES = 50_000
MEMBERS = (-1,)
"""In place of bound positions: the table is a set, read by membership."""


class Relation(NamedTuple):
    """The facts of a predicate; `deleted`: those that an action deleted and none added since."""

    predicate: str
    deleted: bool = False

    @property
    def name(self) -> str:
        return ("not_" if self.deleted else "") + self.predicate


class Access(NamedTuple):
    """A relation, read with these argument positions bound."""

    relation: Relation
    bound: tuple[int, ...]


class Lines:
    """Source text under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        """Adds a line that begins a block."""
        self.add(line)
        self.depth += 1


@dataclass
class Tables:
    """What the generated code of one shape reads, filled while it is generated.

    A scan is the predicates and types that one nest of loops goes through whole.
    """

    domain: Domain
    slots: dict[Access, int] = field(default_factory=dict)
    statics: dict[Access, int] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)
    goal_constants: list[str] = field(default_factory=list)
    functions: list[list[str]] = field(default_factory=list)
    scans: set[tuple[str, ...]] = field(default_factory=set)
    _names: int = 0

    def fresh(self, prefix: str) -> str:
        self._names += 1
        if self._names > MOST_NAMES:
            raise UnsupportedGame("a game whose code would be too large")
        return f"{prefix}{self._names}"

    def relation(self, name: str) -> Relation | None:
        """The relation of a name in a query, or None where no fact can ever bear it."""
        if name in self.domain.predicates:
            return Relation(name)
        if name.startswith("not_") and name[4:] in self.domain.fluents:
            return Relation(name[4:], deleted=True)
        return None

    def is_fluent(self, relation: Relation) -> bool:
        return relation.predicate in self.domain.fluents

    def arity(self, relation: Relation) -> int:
        return len(self.domain.predicates[relation.predicate])

    def kind(self, name: str) -> str:
        """The set of all objects of a type."""
        if name not in self.types:
            self.types.append(name)
        return f"KINDS[{self.types.index(name)}]"

    def constant(self, name: str) -> str:
        if name not in self.goal_constants:
            self.goal_constants.append(name)
        return f"CONST[{self.goal_constants.index(name)}]"

    def read(self, relation: Relation, bound: tuple[int, ...]) -> str:
        """The expression of the table, registered on first use."""
        access = Access(relation, bound)
        if self.is_fluent(relation):
            return f"s[{self.slots.setdefault(access, len(self.slots))}]"
        return f"st{self.statics.setdefault(access, len(self.statics))}"

    def holds(self, relation: Relation, args: Sequence[str]) -> str:
        """A condition: the relation holds of these Python names."""
        if not self.is_fluent(relation):
            return f"({joined(args)} in {self.read(relation, MEMBERS)})"
        if len(args) < 2:
            table = self.read(relation, ())
            return f"({args[0]} in {table})" if args else table
        bound = self._nearest(relation, len(args))
        rest = [n for n in range(len(args)) if n not in bound]
        key, value = joined(picked(args, bound)), joined(picked(args, rest))
        return f"({value} in {self.read(relation, bound)}.get({key}, E))"

    def _nearest(self, relation: Relation, places: int) -> tuple[int, ...]:
        """Rather a slot that is there than another one for the same facts."""
        known = [
            access.bound
            for access in self.slots
            if access.relation == relation and len(access.bound) == places - 1
        ]
        return known[-1] if known else tuple(range(places - 1)) if places == 2 else (0,)

    def loops(
        self, relation: Relation, args: Sequence[str | None], *, ordered: bool
    ) -> tuple[list[str], dict[int, str]]:
        """`for` headers over the matches, and the fresh names of the positions that are None."""
        free = {n: self.fresh("v") for n, arg in enumerate(args) if arg is None}
        bound = tuple(n for n in range(len(args)) if n not in free)
        names = list(free.values())
        sorting = "sorted({})" if ordered and self.is_fluent(relation) else "{}"
        if len(args) == 1:
            return [f"for {names[0]} in {sorting.format(self.read(relation, ()))}:"], free
        if bound:
            key = joined([str(args[n]) for n in bound])
            return [f"for {joined(names)} in {self.read(relation, bound)}.get({key}, E):"], free
        if not self.is_fluent(relation):
            return [f"for {joined(names)} in {self.read(relation, ())}:"], free
        table = self.read(relation, (0,))
        outer = f"for {names[0]} in {sorting.format(table)}:"
        return [outer, f"for {joined(names[1:])} in {table}[{names[0]}]:"], free


def joined(names: Sequence[str]) -> str:
    """One name, or a tuple of several."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def picked(args: Sequence[str], positions: Iterable[int]) -> list[str]:
    return [args[n] for n in positions]


def predicates_of(queries: Iterable[Query]) -> frozenset[str]:
    """All names that queries ask for, `not_` ones as they are written."""
    return frozenset(name for query in queries for name, _ in query)
