"""Logical formulas in negation normal form."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.sexp import Tree, branch, head, typed_list, word

Variables: TypeAlias = tuple[tuple[str, str], ...]
"""(variable with its question mark, type), in order."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A fact that holds, or that does not; constants have no question mark."""

    predicate: str
    args: tuple[str, ...]
    holds: bool = True


@dataclass(frozen=True, slots=True)
class Equal:
    left: str
    right: str
    holds: bool = True


@dataclass(frozen=True, slots=True)
class All:
    """A conjunction."""

    parts: tuple["Formula", ...] = ()


@dataclass(frozen=True, slots=True)
class Any:
    """A disjunction."""

    parts: tuple["Formula", ...] = ()


@dataclass(frozen=True, slots=True)
class Exists:
    variables: Variables
    body: "Formula"


@dataclass(frozen=True, slots=True)
class ForAll:
    variables: Variables
    body: "Formula"


Formula: TypeAlias = Atom | Equal | All | Any | Exists | ForAll
TRUE = All()


class FormulaReader:
    """Reads formulas; every quantified variable gets a name of its own."""

    def __init__(self) -> None:
        self._count = 0

    def read(
        self, tree: Tree, holds: bool = True, names: Mapping[str, str] | None = None
    ) -> Formula:
        names = names or {}
        if not branch(tree):
            return All() if holds else Any()
        word_, *rest = branch(tree)
        match head(tree), rest:
            case ("and" | "or") as op, _:
                parts = tuple(self.read(part, holds, names) for part in rest)
                return All(parts) if (op == "and") == holds else Any(parts)
            case "not", [inner]:
                return self.read(inner, not holds, names)
            case "imply", [left, right]:
                return self.read(["or", ["not", left], right], holds, names)
            case ("exists" | "forall") as op, [variables, body]:
                return self._quantified(op == "exists", variables, body, holds, names)
            case "=", [left, right]:
                return Equal(_term(left, names), _term(right, names), holds)
            case (("not" | "imply" | "exists" | "forall" | "=" | "when"), _):
                raise UnsupportedGame(f"a malformed '{word_}' in a formula")
        return Atom(word(word_), tuple(_term(term, names) for term in rest), holds)

    def _quantified(
        self, exists: bool, variables: Tree, body: Tree, holds: bool, names: Mapping[str, str]
    ) -> Formula:
        inner = dict(names)
        fresh: list[tuple[str, str]] = []
        for name, kind in typed_list(branch(variables)):
            self._count += 1
            inner[name] = f"{name}__{self._count}"
            fresh.append((inner[name], kind))
        read = self.read(body, holds, inner)
        return Exists(tuple(fresh), read) if exists == holds else ForAll(tuple(fresh), read)


def _term(tree: Tree, names: Mapping[str, str]) -> str:
    if isinstance(tree, str) and tree.startswith("?"):
        return names.get(tree, "?" + word(tree[1:]))
    # The goal's constants are numbered placeholders, see `problem.abstract`.
    return tree if isinstance(tree, str) and tree.startswith("$") else word(tree)


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """What a conjunction asks for; any other formula asks for itself."""
    return formula.parts if isinstance(formula, All) else (formula,)


def free_variables(formula: Formula) -> set[str]:
    match formula:
        case All(parts) | Any(parts):
            return set().union(*(free_variables(part) for part in parts))
        case Exists(variables, body) | ForAll(variables, body):
            return free_variables(body) - {name for name, _ in variables}
        case Atom(_, args):
            return {arg for arg in args if arg.startswith("?")}
        case Equal(left, right):
            return {arg for arg in (left, right) if arg.startswith("?")}


def atoms(formula: Formula) -> Iterator[Atom]:
    match formula:
        case All(parts) | Any(parts):
            for part in parts:
                yield from atoms(part)
        case Exists(_, body) | ForAll(_, body):
            yield from atoms(body)
        case Atom():
            yield formula


def types_of(formula: Formula) -> Iterator[str]:
    """The types of all quantified variables."""
    match formula:
        case All(parts) | Any(parts):
            for part in parts:
                yield from types_of(part)
        case Exists(variables, body) | ForAll(variables, body):
            yield from (kind for _, kind in variables)
            yield from types_of(body)


def negated(formula: Formula) -> Formula:
    match formula:
        case All(parts):
            return Any(tuple(negated(part) for part in parts))
        case Any(parts):
            return All(tuple(negated(part) for part in parts))
        case Exists(variables, body):
            return ForAll(variables, negated(body))
        case ForAll(variables, body):
            return Exists(variables, negated(body))
        case Atom() | Equal():
            return replace(formula, holds=not formula.holds)
