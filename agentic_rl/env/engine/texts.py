"""A grammar's texts as Python expressions over the tables."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from agentic_rl.env.engine.csg import (
    Each,
    Expression,
    Listing,
    Placeholder,
    Query,
    Rule,
    Symbol,
    Text,
    read_query,
)
from agentic_rl.env.engine.errors import UnsafeGame, UnsupportedGame
from agentic_rl.env.engine.expressions import TextExpression
from agentic_rl.env.engine.formula import Atom
from agentic_rl.env.engine.grammar import Alternative, Grammar
from agentic_rl.env.engine.relations import Lines, Relation, Tables, joined

MOST_RULE_FUNCTIONS = 2_000
NOTHING = "NONE"
"""The empty text."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The placeholders bound so far, in order, each with its Python name."""

    bound: tuple[tuple[Placeholder, str], ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """By name alone, as expressions see them: a later placeholder of the same name wins."""
        return {name: python for (name, _), python in self.bound}

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        return tuple(placeholder for placeholder, _ in self.bound)

    @property
    def arguments(self) -> str:
        return ", ".join(["s", *(python for _, python in self.bound)])


@dataclass
class Texts:
    """Writes texts; every rule becomes a function for each set of placeholders it is used with."""

    tables: Tables
    grammar: Grammar
    words: list[str] = field(default_factory=list)
    expressions: list[TextExpression] = field(default_factory=list)
    _numbers: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    _functions: dict[tuple[str, tuple[Placeholder, ...]], str] = field(default_factory=dict)

    def text(
        self, symbols: Sequence[Symbol], scope: Scope, known: Collection[Atom] = frozenset()
    ) -> str:
        """One expression for all symbols; `known` atoms hold already and are not looked up."""
        parts = [self._symbol(symbol, scope, known) for symbol in symbols]
        return " + ".join(part for part in parts if part != NOTHING) or NOTHING

    def _symbol(self, symbol: Symbol, scope: Scope, known: Collection[Atom]) -> str:
        match symbol:
            case Text(text):
                return self._word(text)
            case Rule(name):
                return self.rule(name, scope)
            case Expression(source):
                return self._expression(source, scope)
            case Each():
                one, many = self._matches(symbol, scope, known)
                return one if one is not None else f"NONE.join({many})"
            case Listing(each):
                one, many = self._matches(each, scope, known)
                if one is not None:
                    return one
                empty, separator, last = (
                    self._constant(name)
                    for name in ("list_empty", "list_separator", "list_last_separator")
                )
                return f"listed({many}, {empty}, {separator}, {last})"

    def _word(self, text: str) -> str:
        if not text:
            return NOTHING
        if text not in self.words:
            self.words.append(text)
        return f"W[{self.words.index(text)}]"

    def _constant(self, name: str) -> str:
        if name not in self.grammar.constants:
            raise UnsupportedGame(f"the rule {name} is no constant")
        return f"K[{list(self.grammar.constants).index(name)}]"

    def _expression(self, source: str, scope: Scope) -> str:
        expression = TextExpression(source)
        names = scope.names
        unbound = [name for name in expression.names if name not in names]
        if unbound:
            raise UnsafeGame(f"{{{source}}} asks for {unbound[0]}, which is no object at hand")
        key = (source, expression.names)
        if key not in self._numbers:
            self._numbers[key] = len(self.expressions)
            self.expressions.append(expression)
        objects = joined([names[name] for name in expression.names]) if expression.names else "E"
        return f"x{self._numbers[key]}[{objects}]"

    def _matches(self, each: Each, scope: Scope, known: Collection[Atom]) -> tuple[str | None, str]:
        """A single text, or a list of one for each match of the query."""
        if not each.query:
            return self._symbol(each.inner, scope, known), ""
        found = self._clauses(read_query(each.query), scope, known)
        if found is None:
            return None, "[]"
        clauses, inner = found
        text = self._symbol(each.inner, inner, known)
        if not clauses:
            return text, ""
        if clauses[0].startswith("if"):
            clauses = ["for _ in (0,)", *clauses]
        return None, f"[{text} {' '.join(clauses)}]"

    def rule(self, name: str, scope: Scope) -> str:
        """A call of the rule's function; rules of plain text are constants of the game."""
        if name in self.grammar.constants:
            return self._constant(name)
        if name not in self.grammar.rules:
            raise UnsupportedGame(f"the unknown rule {name[:40]!r}")
        key = (name, scope.placeholders)
        if key not in self._functions:
            if len(self._functions) >= MOST_RULE_FUNCTIONS:
                raise UnsupportedGame("a grammar of too many rules")
            self._functions[key] = f"t{len(self._functions)}"
            self._write_rule(self._functions[key], self.grammar.rules[name], scope)
        return f"{self._functions[key]}({scope.arguments})"

    def _write_rule(
        self, function: str, alternatives: tuple[Alternative, ...], outer: Scope
    ) -> None:
        """The first alternative whose query has a match is taken."""
        scope = Scope(tuple((place, f"b{n}") for n, place in enumerate(outer.placeholders)))
        code = Lines()
        code.open(f"def {function}({scope.arguments}):")
        for alternative in alternatives:
            if alternative.query is None:
                code.add(f"return {self.text(alternative.symbols, scope)}")
                break
            found = self._clauses(alternative.query, scope)
            if found is None:
                continue
            for clause in found[0]:
                code.open(f"{clause}:")
            code.add(f"return {self.text(alternative.symbols, scope)}")
            code.depth = 1
        else:
            code.add("no_text()")
        self.tables.functions.append(code.lines)

    def _clauses(
        self, query: Query, scope: Scope, known: Collection[Atom] = frozenset()
    ) -> tuple[list[str], Scope] | None:
        """`for` and `if` clauses in TextWorld's order, or None where no fact can ever match."""
        bound = dict(scope.bound)
        clauses: list[str] = []
        scans: list[str] = []
        for name, places in query:
            relation = self._matching(name, places)
            if relation is None:
                return None
            args = [bound.get(place) for place in places]
            ready = [arg for arg in args if arg is not None]
            if len(ready) == len(args):
                if Atom(name, tuple(f"?{place[0]}" for place in places)) not in known:
                    clauses.append(f"if {self.tables.holds(relation, ready)}")
                continue
            if not ready:
                scans.append(relation.predicate)
            headers, new = self.tables.loops(relation, args, ordered=True)
            clauses += [header.rstrip(":") for header in headers]
            for position, python in new.items():
                clauses += _bind(places[position], python, bound)
        self.tables.scans.add(tuple(scans))
        return clauses, Scope(tuple(bound.items()))

    def _matching(self, name: str, places: tuple[Placeholder, ...]) -> Relation | None:
        """The relation of a query's atom, or None where its places are of other types."""
        relation = self.tables.relation(name)
        if relation is None:
            return None
        declared = self.tables.domain.predicates[relation.predicate]
        if len(declared) != len(places) or any(
            asked not in (kind, "object") for (_, asked), kind in zip(places, declared, strict=True)
        ):
            return None
        if relation.predicate in self.tables.domain.loose:
            raise UnsupportedGame(f"text about the loosely typed predicate {relation.predicate}")
        return relation


def _bind(place: Placeholder, python: str, bound: dict[Placeholder, str]) -> list[str]:
    """The tests that a new value has to pass; distinct placeholders take distinct objects."""
    if place in bound:
        return [f"if {python} == {bound[place]}"]
    tests = [f"if {python} != {other}" for (_, kind), other in bound.items() if kind == place[1]]
    bound[place] = python
    return tests
