"""Actions as Python: when they apply, what they change, how they are commanded and answered."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from agentic_rl.env.engine.csg import Each, Rule, read_query
from agentic_rl.env.engine.domain import Action, Effect
from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.formula import Atom, Equal, Formula, atoms, conjuncts, free_variables
from agentic_rl.env.engine.grammar import walk
from agentic_rl.env.engine.logic import Logic, Names, Nest, Types
from agentic_rl.env.engine.relations import Lines, Relation, Tables, joined
from agentic_rl.env.engine.texts import Scope, Texts

Equalities: TypeAlias = list[tuple[str, str]]
"""Pairs of terms that have to be equal."""


class ActionCode:
    """Writes the functions of one action, whose number is `number`."""

    def __init__(self, number: int, action: Action, logic: Logic, texts: Texts) -> None:
        if action.name not in texts.grammar.actions:
            raise UnsupportedGame(f"action {action.name} without a template")
        self._number, self._action = number, action
        self._logic, self._texts = logic, texts
        self._tables: Tables = logic.tables
        self._text = texts.grammar.actions[action.name]
        self._asked = conjuncts(action.precondition)
        self._arguments = [f"a{n}" for n in range(len(action.parameters))]

    def write(self) -> None:
        """Adds `app`, `cmd` and `fb`; `eff` comes last, once all slots are known."""
        self._write_applicable()
        places = [(variable[1:], kind) for variable, kind in self._action.parameters]
        scope = Scope(tuple(zip(places, self._arguments, strict=True)))
        known = {part for part in self._asked if isinstance(part, Atom) and part.holds}
        self._refuse_fluent_template(known)
        self._write_text("cmd", ["k"], self._texts.text(self._text.template, scope, known))
        self._write_text("fb", ["s", "k"], self._texts.text(self._text.feedback, scope))

    def _write_text(self, name: str, first: list[str], text: str) -> None:
        code = Lines()
        code.open(f"def {name}{self._number}({', '.join([*first, *self._arguments])}):")
        code.add(f"return {text}")
        self._tables.functions.append(code.lines)

    def _refuse_fluent_template(self, known: Iterable[Atom]) -> None:
        """A command is kept by operator alone, so it may not depend on the state."""
        free = {(atom.predicate, atom.args) for atom in known}
        for symbol in walk(self._text.template):
            if isinstance(symbol, Rule) and symbol.name not in self._texts.grammar.constants:
                raise UnsupportedGame(f"a command with the rule {symbol.name[:40]!r}")
            if not isinstance(symbol, Each) or not symbol.query:
                continue
            for name, places in read_query(symbol.query):
                relation = self._tables.relation(name)
                atom = (name, tuple(f"?{place[0]}" for place in places))
                if relation and self._tables.is_fluent(relation) and atom not in free:
                    raise UnsupportedGame("a command that depends on the state")

    # -- when it applies

    def _write_applicable(self) -> None:
        kinds = dict(self._action.parameters)
        branches = self._logic.branches(self._action.precondition)
        if not self._tables.domain.types.issuperset(kinds.values()):
            branches = []
        self._void = self._granted()
        # Branches may find an operator twice; a memo of one cannot know what the others found.
        self._seen = len(branches) > 1 or any(types for types, _ in branches)
        code = Lines()
        code.open(f"def app{self._number}(s, out):")
        if self._seen:
            code.add("seen = set()")
        code.add("pass")
        for types, literals in branches:
            memo = None if self._seen else self._write_block
            nest = Nest(self._logic, code, {}, {**kinds, **types}, memo)
            nest.write(literals, self._offer_to_state)
        self._tables.functions.append(code.lines)

    def _write_block(self, code: Lines, todo: list[Formula], names: Names, types: Types) -> None:
        """A memo of what follows by static facts alone."""
        used = [
            variable
            for variable in names
            if variable in dict(self._action.parameters)
            or any(variable in free_variables(part) for part in todo)
        ]
        name = self._tables.fresh("block")
        block = Lines()
        block.open(f"def {name}_({', '.join(names[variable] for variable in used)}):")
        block.add("out = {}")
        inner = {variable: names[variable] for variable in used}
        Nest(self._logic, block, inner, types).write(todo, self._offer_to_block)
        block.add("return out")
        block.depth = 0
        block.add(f"{name} = Block({name}_)")
        self._tables.functions.append(block.lines)
        code.add(f"merge(s, out, {name}[{joined([names[variable] for variable in used])}])")

    def _offer_to_state(self, code: Lines, names: Names) -> None:
        self._offer(code, names)
        code.add("c = CMD[p]")
        code.open("if out.setdefault(c, p) != p:")
        code.add("clash(s, out[c], p)")

    def _offer_to_block(self, code: Lines, names: Names) -> None:
        self._offer(code, names)
        code.add("c = CMD[p]")
        code.open("if out.setdefault(c, p) != p:")
        code.add("clash_anywhere(c)")

    def _offer(self, code: Lines, names: Names) -> None:
        if self._void:
            code.open(f"if not ({self._all_void(names)}):")
        arguments = [names[variable] for variable, _ in self._action.parameters]
        code.add(f"p = ({', '.join([str(self._number), *arguments])},)")
        if self._seen:
            code.open("if p not in seen:")
            code.add("seen.add(p)")

    # -- operators without an effect, which the translator drops

    def _granted(self) -> list[list[Equalities]]:
        """For every effect the ways in which it is void; empty where some effect never is."""
        found: list[list[Equalities]] = []
        for effect in self._action.effects:
            if effect.conditional:
                return []  # a conditional effect keeps its operator
            ways = self._ways(effect)
            if not ways:
                return self._never(effect)
            found.append(ways)
        return found

    def _ways(self, effect: Effect) -> list[Equalities]:
        """The precondition asks for it; or, of a deletion, another effect adds it back."""
        asked = [part for part in self._asked if isinstance(part, Atom)]
        twins = [atom.args for atom in asked if _same(atom, effect)]
        if not effect.adds:
            twins += [
                other.args
                for other in self._action.effects
                if other.adds and other.predicate == effect.predicate
            ]
        return [
            [(a, b) for a, b in zip(effect.args, args, strict=True) if a != b] for args in twins
        ]

    def _never(self, effect: Effect) -> list[list[Equalities]]:
        nested = [
            atom
            for part in self._asked
            if not isinstance(part, Atom | Equal)
            for atom in atoms(part)
            if _same(atom, effect)
        ]
        if nested and all(self._perhaps(other) for other in self._action.effects):
            raise UnsupportedGame(f"action {self._action.name} has an effect that 'or' asks for")
        return []

    def _perhaps(self, effect: Effect) -> bool:
        return any(_same(atom, effect) for part in self._asked for atom in atoms(part))

    def _all_void(self, names: Names) -> str:
        def equal(pairs: Equalities) -> str:
            term = self._logic.term
            tests = [f"{term(names, left)} == {term(names, right)}" for left, right in pairs]
            return " and ".join(tests) or "True"

        return " and ".join(
            "(" + " or ".join(f"({equal(pairs)})" for pairs in ways) + ")" for ways in self._void
        )

    # -- what it changes

    def effects(self, live: frozenset[str], text_predicates: frozenset[str]) -> list[str]:
        """The source of `eff`; `live` fluents are those that anything reads."""
        names = {v: a for (v, _), a in zip(self._action.parameters, self._arguments, strict=True)}
        code, body = Lines(), Lines()
        code.open(f"def eff{self._number}({', '.join(['s', 'k', *self._arguments])}):")
        body.depth = 1
        kept = [effect for effect in self._action.effects if self._matters(effect, live)]
        for n, effect in enumerate(kept):
            _check_text(effect, self._asked, text_predicates)
            if effect.conditional:
                code.add(f"c{n} = {self._logic.condition(effect.condition, names)}")
        # Deletions first: what is both deleted and added holds.
        for n, effect in sorted(enumerate(kept), key=lambda item: item[1].adds):
            args = [self._logic.term(names, arg) for arg in effect.args]
            if effect.conditional:
                body.open(f"if c{n}:")
            change(self._tables, body, effect.predicate, args, adds=effect.adds)
            body.depth = 1
        if not body.lines:
            code.add("return s")
            return code.lines
        slots = "".join(f"s{n}, " for n in range(len(self._tables.slots)))
        code.add(f"{slots}h = s")
        code.lines += body.lines
        code.add(f"return s if h == s[-1] else ({slots}h)")
        return code.lines

    def _matters(self, effect: Effect, live: frozenset[str]) -> bool:
        """What the precondition grants is no effect: no `not_` fact arises from it either."""
        asked = Atom(effect.predicate, effect.args, effect.adds)
        return effect.predicate in live and asked not in self._asked


def _check_text(effect: Effect, asked: Sequence[Formula], text_predicates: frozenset[str]) -> None:
    """TextWorld's texts see a conditional effect whether or not its condition held."""
    name = effect.predicate
    if effect.conditional and not text_predicates.isdisjoint((name, f"not_{name}")):
        raise UnsupportedGame(f"text about {name}, which an effect changes on a condition")
    deleted = Atom(name, effect.args)
    if not effect.adds and f"not_{name}" in text_predicates and deleted not in asked:
        raise UnsupportedGame(f"text about not_{name}, which needs reachability")


def change(tables: Tables, code: Lines, predicate: str, args: list[str], *, adds: bool) -> None:
    """Writes one change into all slots of its facts, and into the hash."""
    for relation, plus in ((Relation(predicate), adds), (Relation(predicate, True), not adds)):
        mine = [
            (access.bound, n) for access, n in tables.slots.items() if access.relation == relation
        ]
        if mine:
            _change_slots(tables, code, relation, mine, args, plus)


def _change_slots(
    tables: Tables,
    code: Lines,
    relation: Relation,
    slots: list[tuple[tuple[int, ...], int]],
    args: list[str],
    plus: bool,
) -> None:
    depth = code.depth
    _, first = slots[0]
    number = stored(tables).index(relation)
    if not args:
        code.open(f"if s{first} is not {plus}:")
        code.add(f"s{first} = {plus}")
    elif len(args) == 1:
        code.open(f"if {args[0]} {'not in' if plus else 'in'} s{first}:")
        code.add(f"s{first} = s{first} {'|' if plus else '-'} {{{args[0]}}}")
    else:
        function = "with_pair" if plus else "without_pair"
        for place, (bound, slot) in enumerate(slots):
            key = joined([args[n] for n in bound])
            value = joined([args[n] for n in range(len(args)) if n not in bound])
            if place == 0:
                code.add(f"t = {function}(s{slot}, {key}, {value})")
                code.open(f"if t is not s{slot}:")
                code.add(f"s{slot} = t")
            else:
                code.add(f"s{slot} = {function}(s{slot}, {key}, {value})")
    code.add(f"h ^= HASH[{', '.join([str(number), *args])},]")
    code.depth = depth


def stored(tables: Tables) -> list[Relation]:
    """The relations that a state holds, in the order of their numbers."""
    return list(dict.fromkeys(access.relation for access in tables.slots))


def live_fluents(
    actions: Iterable[Action],
    goal: Formula,
    text_predicates: frozenset[str],
    fluents: frozenset[str],
) -> frozenset[str]:
    """The fluents that a text, a precondition, the goal or a live effect's condition reads."""
    actions = list(actions)
    live = {name for name in fluents if not text_predicates.isdisjoint((name, f"not_{name}"))}
    for formula in (goal, *(action.precondition for action in actions)):
        live |= {atom.predicate for atom in atoms(formula)} & fluents
    effects = [effect for action in actions for effect in action.effects]
    while True:
        before = len(live)
        for effect in effects:
            if effect.predicate in live:
                live |= {atom.predicate for atom in atoms(effect.condition)} & fluents
        if len(live) == before:
            return frozenset(live)


def _same(atom: Atom, effect: Effect) -> bool:
    """An atom of the effect's predicate and sign, whatever its arguments."""
    return atom.predicate == effect.predicate and atom.holds == effect.adds
