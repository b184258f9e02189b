"""A PDDL domain: flat types, predicates, actions with conditional effects."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.formula import (
    TRUE,
    All,
    Atom,
    Formula,
    FormulaReader,
    Variables,
    atoms,
    free_variables,
)
from agentic_rl.env.engine.sexp import Tree, branch, head, read, typed_list, word

MOST_ACTIONS = 200
MOST_PARAMETERS = 10
_COSTS = ("increase", "decrease", "assign")
_IGNORED = (":requirements", ":functions")


@dataclass(frozen=True, slots=True)
class Effect:
    """Adds an atom or deletes it, where the condition holds in the state before."""

    adds: bool
    predicate: str
    args: tuple[str, ...]
    condition: Formula = TRUE

    @property
    def conditional(self) -> bool:
        return self.condition != TRUE


@dataclass(frozen=True, slots=True)
class Action:
    name: str
    parameters: Variables
    precondition: Formula
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """`loose` predicates may come to hold objects of other types than declared."""

    types: frozenset[str]
    predicates: Mapping[str, tuple[str, ...]]
    actions: tuple[Action, ...]
    fluents: frozenset[str]
    constants: frozenset[str]
    loose: frozenset[str]


def read_domain(text: str) -> Domain:
    """Raises UnsupportedGame for anything beyond flat types and plain predicates."""
    forms = read(text)
    if len(forms) != 1 or head(forms[0]) != "define":
        raise UnsupportedGame("a domain that is not one (define ...)")
    reader = _DomainReader()
    for section in branch(forms[0])[2:]:
        reader.section(section)
    return reader.domain()


class _DomainReader:
    def __init__(self) -> None:
        self._types = {"object"}
        self._predicates: dict[str, tuple[str, ...]] = {}
        self._actions: dict[str, Action] = {}
        self._formulas = FormulaReader()

    def section(self, tree: Tree) -> None:
        kind, body = head(tree), branch(tree)[1:]
        if kind == ":types":
            for name, parent in typed_list(body):
                if parent != "object":
                    raise UnsupportedGame(f"a type hierarchy: {name} is a kind of {parent}")
                self._types.add(name)
        elif kind == ":predicates":
            for declared in body:
                self._declare(declared)
        elif kind == ":action":
            self._action(body)
        elif kind in (":derived", ":axiom"):
            raise UnsupportedGame("derived predicates")
        elif kind == ":constants":
            raise UnsupportedGame("domain constants")
        elif kind not in _IGNORED:
            raise UnsupportedGame(f"a section {kind[:40]} in the domain")

    def domain(self) -> Domain:
        actions = tuple(self._actions.values())
        effects = [effect for action in actions for effect in action.effects]
        for action in actions:
            self._check(action)
        return Domain(
            types=frozenset(self._types),
            predicates=self._predicates,
            actions=actions,
            fluents=frozenset(effect.predicate for effect in effects),
            constants=frozenset(
                arg
                for action in actions
                for atom in _atoms_of(action)
                for arg in atom.args
                if not arg.startswith("?")
            ),
            loose=frozenset(name for action in actions for name in self._loose(action)),
        )

    def _declare(self, tree: Tree) -> None:
        name, arguments = word(head(tree)), typed_list(branch(tree)[1:])
        if name in self._predicates:
            raise UnsupportedGame(f"predicate {name} declared twice")
        if name == "=" or any(kind not in self._types for _, kind in arguments):
            raise UnsupportedGame(f"predicate {name} of an undeclared type")
        self._predicates[name] = tuple(kind for _, kind in arguments)

    def _action(self, body: list[Tree]) -> None:
        if not body or len(body) % 2 != 1:
            raise UnsupportedGame("a malformed action")
        name = word(body[0])
        parts = {word_[1:]: part for word_, part in _pairs(body[1:])}
        if set(parts) - {"parameters", "precondition", "effect"}:
            raise UnsupportedGame(f"action {name} with {', '.join(sorted(parts))[:80]}")
        parameters = tuple(typed_list(branch(parts.get("parameters", []))))
        if name in self._actions or len({variable for variable, _ in parameters}) < len(parameters):
            raise UnsupportedGame(f"action {name} or one of its parameters declared twice")
        if len(self._actions) >= MOST_ACTIONS or len(parameters) > MOST_PARAMETERS:
            raise UnsupportedGame("too many actions or parameters")
        self._actions[name] = Action(
            name=name,
            parameters=parameters,
            precondition=self._formulas.read(parts.get("precondition", [])),
            effects=tuple(self._effects(parts.get("effect", []), TRUE)),
        )

    def _effects(self, tree: Tree, condition: Formula) -> Iterator[Effect]:
        if not branch(tree):
            return
        kind, *rest = branch(tree)
        match head(tree), rest:
            case "and", _:
                for part in rest:
                    yield from self._effects(part, condition)
            case "when", [when, effect]:
                both = All((condition, self._formulas.read(when)))
                yield from self._effects(effect, both)
            case "not", [[predicate, *args]]:
                yield Effect(False, word(predicate), _terms(args), condition)
            case "forall", _:
                raise UnsupportedGame("an effect over all objects")
            case (("when" | "not" | "or" | "exists" | "imply" | "="), _):
                raise UnsupportedGame(f"'{kind}' in an effect")
            case known, _ if known not in _COSTS:
                yield Effect(True, word(known), _terms(rest), condition)

    def _check(self, action: Action) -> None:
        """Every predicate is declared, with as many places; every variable is bound."""
        for atom in _atoms_of(action):
            declared = self._predicates.get(atom.predicate)
            if declared is None or len(declared) != len(atom.args):
                raise UnsupportedGame(
                    f"action {action.name} uses the undeclared predicate"
                    f" {atom.predicate} of {len(atom.args)} places"
                )
        bound = {variable for variable, _ in action.parameters}
        used = free_variables(action.precondition)
        for effect in action.effects:
            used |= {arg for arg in effect.args if arg.startswith("?")}
            used |= free_variables(effect.condition)
        if used - bound:
            raise UnsupportedGame(f"action {action.name} uses the unbound {min(used - bound)}")

    def _loose(self, action: Action) -> Iterator[str]:
        kinds = dict(action.parameters)
        for effect in action.effects:
            declared = self._predicates[effect.predicate]
            for arg, kind in zip(effect.args, declared, strict=True):
                if kind != "object" and kinds.get(arg) != kind:
                    yield effect.predicate


def _atoms_of(action: Action) -> Iterator[Atom]:
    yield from atoms(action.precondition)
    for effect in action.effects:
        yield Atom(effect.predicate, effect.args)
        yield from atoms(effect.condition)


def _pairs(items: list[Tree]) -> list[tuple[str, Tree]]:
    return [(_keyword(items[n]), items[n + 1]) for n in range(0, len(items), 2)]


def _keyword(tree: Tree) -> str:
    if not isinstance(tree, str) or not tree.startswith(":"):
        raise UnsupportedGame("a malformed action")
    return tree


def _terms(items: list[Tree]) -> tuple[str, ...]:
    return tuple(
        "?" + word(item[1:]) if isinstance(item, str) and item.startswith("?") else word(item)
        for item in items
    )
