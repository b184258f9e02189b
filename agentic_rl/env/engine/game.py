"""One game: its file read, checked and bound to compiled code; shared by all its branches."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from agentic_rl.env.engine.compiler import Shape, compile_shape, legend
from agentic_rl.env.engine.domain import Domain, read_domain
from agentic_rl.env.engine.errors import UnsafeGame, UnsupportedGame
from agentic_rl.env.engine.expressions import Entity
from agentic_rl.env.engine.formula import FormulaReader
from agentic_rl.env.engine.grammar import Grammar, read_grammar
from agentic_rl.env.engine.problem import Problem, abstract, read_problem
from agentic_rl.env.engine.relations import MEMBERS, Access, Relation
from agentic_rl.env.engine.runtime import (
    Commands,
    CommandTexts,
    FactHashes,
    Operator,
    State,
    Words,
)

MOST_BYTES = 8_000_000
MOST_SHAPES = 64
MOST_TURNS = 1_000_000

Naming = Callable[[Iterable[str]], Mapping[str, str]]

_domains: dict[str, Domain] = {}
_shapes: dict[tuple[str, str, str], Shape] = {}


@dataclass(frozen=True)
class GameFile:
    """The parts of a `game.tw-pddl`, and the sha256 of its bytes."""

    digest: str
    domain: str
    grammar: str
    problem: str


def read_file(path: str | Path) -> GameFile:
    """Raises UnsafeGame for a file that is too large, UnsupportedGame for one that is no game."""
    if Path(path).stat().st_size > MOST_BYTES:
        raise UnsafeGame(f"{path} is larger than {MOST_BYTES} bytes")
    return parse_file(Path(path).read_bytes())


def parse_file(content: bytes) -> GameFile:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnsupportedGame("a game file that is no JSON") from error
    if not isinstance(data, dict):
        raise UnsupportedGame("a game file that is no JSON object")
    parts = [data.get(key) for key in ("pddl_domain", "grammar", "pddl_problem")]
    if not all(isinstance(part, str) for part in parts):
        raise UnsupportedGame("a game file without pddl_domain, grammar and pddl_problem")
    return GameFile(hashlib.sha256(content).hexdigest(), *map(str, parts))


class Game:
    """A game ready to play. `start` is its first state; states are values that never change."""

    def __init__(self, file: GameFile, naming: Naming) -> None:
        domain, grammar = _domain(file.domain), read_grammar(file.grammar)
        problem = read_problem(file.problem)
        constants: list[str] = []
        goal = abstract(problem.goal, constants)
        self.digest = file.digest
        self.domain = domain
        self.goal_tree = problem.goal
        self.shape = _shape(file.domain, domain, grammar, goal)
        self.ids = sorted(problem.objects)
        self.types = [problem.objects[name] for name in self.ids]
        numbers = {name: number for number, name in enumerate(self.ids)}
        facts, named = _facts(problem, domain, numbers)
        names = naming([self.ids[number] for number in named])
        self.entities = {
            number: Entity(self.ids[number], self.types[number], names[self.ids[number]])
            for number in named
        }
        tables = _bind(self.shape, grammar, self, facts, constants, numbers)
        _refuse_endless_loops(self.shape, self, facts)
        applicable, won, intro, effects, feedback = self.shape.make(tables)
        tables.effects, tables.feedback = effects, feedback
        self.commands: Callable[[State], Commands] = applicable
        self.won: Callable[[State], bool] = won
        self.intro: Callable[[State], str] = intro
        self._effects, self._feedback = effects, feedback
        self._slot_of = {
            access.relation: n for n, access in reversed([*enumerate(self.shape.slots)])
        }
        self._statics = facts
        self.hashes = tables.hashes
        slots = [
            _table(facts.get(slot.relation.name, set()), slot, self) for slot in self.shape.slots
        ]
        self.start: State = (*slots, int(self.digest[:16], 16))

    @property
    def source(self) -> str:
        """The generated code, followed by what its numbers stand for; for reading."""
        return legend(self.shape)

    def act(self, state: State, operator: Operator) -> State:
        """The state after an operator; the very same one where nothing changes."""
        after: State = self._effects[operator[0]](state, *operator)
        return after

    def answer(self, state: State, operator: Operator) -> str:
        """What the game says to an operator that has led to this state."""
        text: str = self._feedback[operator[0]](state, *operator)
        return text

    def facts(self, state: State, predicate: str) -> Iterator[tuple[int, ...]]:
        """All facts of a predicate, in order. A fluent that nothing reads has none."""
        relation = Relation(predicate)
        if predicate in self.domain.fluents:
            slot = self._slot_of.get(relation)
            if slot is not None:
                yield from entries(self.shape.slots[slot], state[slot], self.arity(relation))
        else:
            yield from sorted(self._statics.get(predicate, ()))

    def key(self, state: State, predicate: str) -> Hashable:
        """Equal for states that hold the same facts of a predicate; quick for a few facts."""
        slot = self._slot_of.get(Relation(predicate))
        value = state[slot] if slot is not None else None
        return tuple(value.items()) if isinstance(value, dict) else value

    def arity(self, relation: Relation) -> int:
        return len(self.domain.predicates[relation.predicate])

    def stored_facts(self, state: State) -> Iterator[tuple[int, ...]]:
        """All facts in a state, each as its relation's number and its objects, in order."""
        for number, relation in enumerate(self.shape.relations):
            slot = self._slot_of[relation]
            for fact in entries(self.shape.slots[slot], state[slot], self.arity(relation)):
                yield (number, *fact)

    def state_of(self, facts: Iterable[tuple[int, ...]]) -> State:
        """The state that holds exactly these facts; the opposite of `stored_facts`."""
        grouped: dict[Relation, set[tuple[int, ...]]] = {}
        for number, *objects in facts:
            grouped.setdefault(self.shape.relations[number], set()).add(tuple(objects))
        slots = [_table(grouped.get(slot.relation, set()), slot, self) for slot in self.shape.slots]
        state: State = (*slots, 0)
        return (*slots, self.hash_of(state))

    def hash_of(self, state: State) -> int:
        """The hash from scratch; effects keep it up to date fact by fact."""
        value: int = self.start[-1]
        for facts in (self.stored_facts(self.start), self.stored_facts(state)):
            for fact in facts:
                value ^= self.hashes[fact]
        return value


@dataclass
class _Bound:
    """What the generated `make(T)` reads: the tables of one game."""

    game: Game
    kinds: Sequence[frozenset[int]]
    constants: Sequence[int]
    texts: Sequence[str]
    words: Sequence[str]
    statics: Sequence[Any]
    expressions: Sequence[Words]
    hashes: FactHashes
    effects: Sequence[Callable[..., State]] = ()
    feedback: Sequence[Callable[..., str]] = ()
    commands: Callable[..., CommandTexts] = field(default=CommandTexts)

    def clash(self, state: State, first: Operator, second: Operator) -> None:
        """Two operators behind one command have to do and say the same."""
        after = [self.effects[operator[0]](state, *operator) for operator in (first, second)]
        said = [
            self.feedback[operator[0]](result, *operator)
            for operator, result in zip((first, second), after, strict=True)
        ]
        if after[0][-1] != after[1][-1] or said[0] != said[1]:
            raise UnsupportedGame("one command for two actions that differ")

    def clash_anywhere(self, command: str) -> None:
        raise UnsupportedGame(f"one command for two actions: {command[:60]!r}")

    def merge(self, state: State, commands: Commands, block: Commands) -> None:
        if not commands.keys().isdisjoint(block.keys()):
            for command in commands.keys() & block.keys():
                self.clash(state, commands[command], block[command])
        commands.update(block)

    def no_text(self) -> None:
        raise UnsupportedGame("a rule none of whose alternatives applies")


def _domain(text: str) -> Domain:
    if text not in _domains:
        if len(_domains) >= MOST_SHAPES:
            _domains.clear()
        _domains[text] = read_domain(text)
    return _domains[text]


def _shape(text: str, domain: Domain, grammar: Grammar, goal: Any) -> Shape:
    key = (text, grammar.structure, repr(goal))
    if key not in _shapes:
        if len(_shapes) >= MOST_SHAPES:
            _shapes.clear()
        _shapes[key] = compile_shape(domain, grammar, FormulaReader().read(goal))
    return _shapes[key]


def _facts(
    problem: Problem, domain: Domain, numbers: Mapping[str, int]
) -> tuple[dict[str, set[tuple[int, ...]]], list[int]]:
    """The facts at the start by predicate, and the objects they name, in order."""
    found: dict[str, set[tuple[int, ...]]] = {name: set() for name in domain.predicates}
    kind_of, number_of = problem.objects.get, numbers.__getitem__
    for fact in problem.facts:
        predicate, args = fact[0], fact[1:]
        if tuple(map(kind_of, args)) != domain.predicates.get(predicate):
            raise UnsupportedGame(f"a fact of {predicate[:40]} against its declaration")
        found[predicate].add(tuple(map(number_of, args)))
    if not domain.types.issuperset(problem.objects.values()):
        raise UnsupportedGame("an object of an undeclared type")
    return found, sorted({number for facts in found.values() for fact in facts for number in fact})


def _bind(
    shape: Shape,
    grammar: Grammar,
    game: Game,
    facts: Mapping[str, set[tuple[int, ...]]],
    constants: Sequence[str],
    numbers: Mapping[str, int],
) -> _Bound:
    goal_constants = {f"${n}": numbers.get(name, -1) for n, name in enumerate(constants)}
    everything = range(len(game.ids))
    return _Bound(
        game=game,
        kinds=[
            frozenset(n for n in everything if kind == "object" or game.types[n] == kind)
            for kind in shape.types
        ],
        # A constant that is no object: nothing is true of it.
        constants=[goal_constants.get(name, numbers.get(name, -1)) for name in shape.constants],
        texts=tuple(grammar.constants.values()),
        words=shape.words,
        statics=[
            _table(facts.get(access.relation.name, set()), access, game, static=True)
            for access in shape.statics
        ],
        expressions=[Words(expression, game.entities) for expression in shape.expressions],
        hashes=FactHashes([relation.name for relation in shape.relations], game.ids),
    )


def _refuse_endless_loops(shape: Shape, game: Game, facts: Mapping[str, Collection[Any]]) -> None:
    """A nest of loops that takes seconds would take them at every step."""
    kinds = Counter(game.types)
    kinds["object"] = len(game.ids)
    for scan in shape.scans:
        sizes = [kinds[name[2:]] if name[0] == "-" else len(facts[name]) for name in scan]
        if prod(max(size, 1) for size in sizes) > MOST_TURNS:
            raise UnsupportedGame(f"a formula over all of {', '.join(scan)[:80]}")


def _table(facts: set[tuple[int, ...]], access: Access, game: Game, *, static: bool = False) -> Any:
    """Facts arranged for one way of reading them."""
    bound, arity = access.bound, game.arity(access.relation)
    if arity == 0:
        return bool(facts) if not static else frozenset(facts)
    if bound == MEMBERS:
        return frozenset(fact[0] for fact in facts) if arity == 1 else frozenset(facts)
    if arity == 1:
        ordered = sorted(fact[0] for fact in facts)
        return tuple(ordered) if static else frozenset(ordered)
    if not bound:
        return tuple(sorted(facts))
    table: dict[Any, list[Any]] = {}
    rest = [n for n in range(arity) if n not in bound]
    for fact in sorted(facts):
        table.setdefault(_part(fact, bound), []).append(_part(fact, rest))
    return {key: tuple(values) for key, values in table.items()}


def _part(fact: tuple[int, ...], positions: Sequence[int]) -> Any:
    return fact[positions[0]] if len(positions) == 1 else tuple([fact[n] for n in positions])


def entries(access: Access, value: Any, arity: int) -> Iterator[tuple[int, ...]]:
    """The facts in a slot, in order."""
    if arity == 0:
        yield from [()] if value else []
    elif arity == 1:
        yield from ((number,) for number in sorted(value))
    else:
        yield from sorted(
            _fact(access.bound, key, rest) for key, values in value.items() for rest in values
        )


def _fact(bound: tuple[int, ...], key: Any, rest: Any) -> tuple[int, ...]:
    keys = key if len(bound) > 1 else (key,)
    rests = rest if isinstance(rest, tuple) else (rest,)
    fact = dict(zip(bound, keys, strict=True))
    free = [n for n in range(len(keys) + len(rests)) if n not in fact]
    fact.update(zip(free, rests, strict=True))
    return tuple(fact[n] for n in range(len(fact)))
