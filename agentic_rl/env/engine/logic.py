"""Formulas as Python: conditions, and nested loops over all that makes them true."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.formula import (
    All,
    Any,
    Atom,
    Equal,
    Exists,
    ForAll,
    Formula,
    atoms,
    free_variables,
    negated,
)
from agentic_rl.env.engine.relations import Lines, Relation, Tables

MOST_BRANCHES = 256

Names: TypeAlias = dict[str, str]
"""PDDL variable -> Python name."""
Types: TypeAlias = dict[str, str]
Branch: TypeAlias = tuple[Types, list[Formula]]
"""Types of the quantified variables, and what has to hold: literals and closed formulas."""
Body: TypeAlias = Callable[[Lines, Names], None]
Memo: TypeAlias = Callable[[Lines, list[Formula], Names, Types], None]


class Logic:
    """Writes conditions and loops that read the tables of one shape."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def term(self, names: Mapping[str, str], term: str) -> str:
        return names[term] if term.startswith("?") else self.tables.constant(term)

    def condition(self, formula: Formula, names: Mapping[str, str]) -> str:
        """An expression for a formula whose free variables all have names."""
        match formula:
            case All(parts) | Any(parts) if not parts:
                return str(isinstance(formula, All))
            case All(parts):
                return "(" + " and ".join(self.condition(part, names) for part in parts) + ")"
            case Any(parts):
                return "(" + " or ".join(self.condition(part, names) for part in parts) + ")"
            case Equal(left, right, holds):
                sign = "==" if holds else "!="
                return f"({self.term(names, left)} {sign} {self.term(names, right)})"
            case Atom(predicate, args, holds):
                found = self._atom(predicate, [self.term(names, arg) for arg in args])
                return found if holds else f"(not {found})"
            case ForAll():
                return f"(not {self.condition(negated(formula), names)})"
            case Exists():
                return self._exists(formula, names)

    def _atom(self, predicate: str, args: Sequence[str]) -> str:
        declared = self.tables.domain.predicates.get(predicate)
        if declared is None or len(declared) != len(args):
            raise UnsupportedGame(f"the undeclared predicate {predicate} of {len(args)} places")
        return self.tables.holds(Relation(predicate), args)

    def _exists(self, formula: Exists, names: Mapping[str, str]) -> str:
        """A function of its own that looks for a first example."""
        free = sorted(free_variables(formula))
        name = self.tables.fresh("q")
        code = Lines()
        code.open(f"def {name}({', '.join(['s', *(f'b{n}' for n in range(len(free)))])}):")
        inner = {variable: f"b{n}" for n, variable in enumerate(free)}
        for types, literals in self.branches(formula):
            Nest(self, code, dict(inner), types).write(
                literals, lambda code, _: code.add("return True")
            )
        code.add("return False")
        self.tables.functions.append(code.lines)
        return f"{name}({', '.join(['s', *(names[variable] for variable in free)])})"

    def branches(self, formula: Formula) -> list[Branch]:
        """The alternatives of a formula, so far as its disjunctions bind variables."""
        found = self._branches(formula)
        if len(found) > MOST_BRANCHES:
            raise UnsupportedGame("a formula of too many alternatives")
        return found

    def _branches(self, formula: Formula) -> list[Branch]:
        match formula:
            case Exists(variables, body):
                own = dict(variables)
                inner = [({**own, **types}, parts) for types, parts in self.branches(body)]
                known = self.tables.domain.types
                return [found for found in inner if known.issuperset(found[0].values())]
            case All(parts):
                return self._product(parts)
            case Any(parts):
                return [found for part in parts for found in self.branches(part)]
        return [({}, [formula])]

    def _product(self, parts: tuple[Formula, ...]) -> list[Branch]:
        sure = {arg for part in parts if isinstance(part, Atom) and part.holds for arg in part.args}
        found: list[Branch] = [({}, [])]
        for part in parts:
            whole = isinstance(part, Any) and free_variables(part) <= sure
            more = [({}, [part])] if whole else self.branches(part)
            if len(found) * len(more) > MOST_BRANCHES:
                raise UnsupportedGame("a formula of too many alternatives")
            found = [
                ({**types, **types2}, literals + literals2)
                for types, literals in found
                for types2, literals2 in more
            ]
        return found


class Nest:
    """Nested loops over all assignments that make a conjunction true, in a greedy order.

    With `memo`, what is left once only static atoms remain is written by it instead.
    """

    def __init__(
        self, logic: Logic, code: Lines, names: Names, types: Types, memo: Memo | None = None
    ) -> None:
        self._logic, self._tables = logic, logic.tables
        self._code, self._names, self._types = code, names, types
        self._memo = memo
        self._scans: list[str] = []

    def write(self, literals: Sequence[Formula], body: Body) -> None:
        """Adds the loops; the indentation is afterwards what it was."""
        depth = self._code.depth
        todo = list(literals)
        while self._checks(todo) or self._next(todo, body):
            pass
        self._tables.scans.add(tuple(self._scans))
        self._code.depth = depth

    def _checks(self, todo: list[Formula]) -> bool:
        """Writes whatever can be decided already."""
        ready = [part for part in todo if free_variables(part) <= self._names.keys()]
        for part in ready:
            todo.remove(part)
            condition = self._logic.condition(part, self._names)
            if condition != "True":
                self._code.open(f"if {condition}:")
        return bool(ready)

    def _next(self, todo: list[Formula], body: Body) -> bool:
        """Writes one loop, or the end; True where something is left to do."""
        atom = self._cheapest(todo)
        if atom is not None:
            static = not any(
                self._tables.is_fluent(Relation(other.predicate))
                for part in todo
                for other in atoms(part)
            )
            if self._memo is not None and self._names and static:
                self._memo(self._code, todo, self._names, self._types)
                return False
            todo.remove(atom)
            self._loop(atom)
            return True
        open_ = [variable for variable in self._types if variable not in self._names]
        if open_:
            name = self._names[open_[0]] = self._tables.fresh("v")
            kind = self._types[open_[0]]
            self._scans.append(f"- {kind}")
            self._code.open(f"for {name} in {self._tables.kind(kind)}:")
            return True
        if todo:
            raise UnsupportedGame("a formula with a variable that nothing binds")
        body(self._code, self._names)
        return False

    def _cheapest(self, todo: list[Formula]) -> Atom | None:
        found = [part for part in todo if isinstance(part, Atom) and part.holds]
        return min(found, key=self._cost, default=None)

    def _cost(self, atom: Atom) -> int:
        fluent = self._tables.is_fluent(Relation(atom.predicate))
        if any(not arg.startswith("?") or arg in self._names for arg in atom.args):
            return 2 if fluent else 3
        return 5 if fluent else 6

    def _loop(self, atom: Atom) -> None:
        declared = self._tables.domain.predicates.get(atom.predicate)
        if declared is None or len(declared) != len(atom.args):
            raise UnsupportedGame(
                f"the undeclared predicate {atom.predicate} of {len(atom.args)} places"
            )
        args = [
            None
            if arg.startswith("?") and arg not in self._names
            else self._logic.term(self._names, arg)
            for arg in atom.args
        ]
        if all(arg is None for arg in args):
            self._scans.append(atom.predicate)
        headers, new = self._tables.loops(Relation(atom.predicate), args, ordered=False)
        for header in headers:
            self._code.open(header)
        tests: list[str] = []
        for position, name in new.items():
            variable = atom.args[position]
            if variable in self._names:
                tests.append(f"if {self._names[variable]} == {name}:")
                continue
            self._names[variable] = name
            kind = self._types.get(variable, "object")
            loose = atom.predicate in self._tables.domain.loose
            if kind != "object" and (loose or declared[position] != kind):
                tests.append(f"if {name} in {self._tables.kind(kind)}:")
        for test in tests:
            self._code.open(test)
