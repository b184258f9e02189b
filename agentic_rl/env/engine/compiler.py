"""From domain, grammar and the shape of a goal to the code that plays all games of that shape."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentic_rl.env.engine.actions import ActionCode, live_fluents, stored
from agentic_rl.env.engine.domain import Domain
from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.expressions import TextExpression
from agentic_rl.env.engine.formula import Formula
from agentic_rl.env.engine.grammar import Grammar, queries
from agentic_rl.env.engine.logic import Logic
from agentic_rl.env.engine.relations import Access, Lines, Relation, Tables, predicates_of
from agentic_rl.env.engine.runtime import Block, listed, with_pair, without_pair
from agentic_rl.env.engine.texts import Scope, Texts

MOST_SOURCE = 2_000_000

Factory: TypeAlias = Callable[[Any], Any]
"""`make(T)` of the generated source: binds the tables of a game."""


@dataclass(frozen=True)
class Shape:
    """Compiled code, shared by all games of one domain, grammar and goal shape.

    `source` holds no name and no text of a file: predicates, types and words go by number, and
    the tuples here say which they are.
    """

    source: str
    make: Factory
    slots: tuple[Access, ...]
    statics: tuple[Access, ...]
    relations: tuple[Relation, ...]
    types: tuple[str, ...]
    constants: tuple[str, ...]
    words: tuple[str, ...]
    expressions: tuple[TextExpression, ...]
    actions: tuple[str, ...]
    scans: frozenset[tuple[str, ...]]


def compile_shape(domain: Domain, grammar: Grammar, goal: Formula) -> Shape:
    """Raises UnsupportedGame for what the code could not reproduce."""
    try:
        return _compile(domain, grammar, goal)
    except RecursionError as error:
        raise UnsupportedGame("a game nested too deeply") from error


def legend(shape: Shape) -> str:
    """The source with comments that name its tables; it is never run."""
    lines = [shape.source, ""]
    lines += [f"# action {n}: {name}" for n, name in enumerate(shape.actions)]
    lines += [f"# s[{n}]: {_access(slot)}" for n, slot in enumerate(shape.slots)]
    lines += [f"# st{n}: {_access(table)}" for n, table in enumerate(shape.statics)]
    lines += [f"# KINDS[{n}]: {name}" for n, name in enumerate(shape.types)]
    lines += [f"# CONST[{n}]: {name}" for n, name in enumerate(shape.constants)]
    lines += [f"# x{n}: {expression.source!r}" for n, expression in enumerate(shape.expressions)]
    lines += [f"# W[{n}]: {text!r}" for n, text in enumerate(shape.words)]
    return "\n".join(lines) + "\n"


def _access(access: Access) -> str:
    return f"{access.relation.name} by {access.bound}"


def _compile(domain: Domain, grammar: Grammar, goal: Formula) -> Shape:
    tables = Tables(domain)
    logic, texts = Logic(tables), Texts(tables, grammar)
    codes = [ActionCode(n, action, logic, texts) for n, action in enumerate(domain.actions)]
    for code in codes:
        code.write()
    _function(tables, "goal", logic.condition(goal, {}))
    _function(tables, "intro", texts.rule("intro", Scope()))
    read = predicates_of(queries(grammar))
    live = live_fluents(domain.actions, goal, read, domain.fluents)
    effects: list[list[str]] = []
    for _ in range(2):  # the conditions of effects may read in new ways: once more with all slots
        effects = [code.effects(live, read) for code in codes]
    source = "\n".join(_source(tables, effects, len(texts.expressions)))
    return Shape(
        source=source,
        make=_load(source),
        slots=tuple(tables.slots),
        statics=tuple(tables.statics),
        relations=tuple(stored(tables)),
        types=tuple(tables.types),
        constants=tuple(tables.goal_constants),
        words=tuple(texts.words),
        expressions=tuple(texts.expressions),
        actions=tuple(action.name for action in domain.actions),
        scans=frozenset(tables.scans),
    )


def _function(tables: Tables, name: str, value: str) -> None:
    code = Lines()
    code.open(f"def {name}(s):")
    code.add(f"return {value}")
    tables.functions.append(code.lines)


def _source(tables: Tables, effects: list[list[str]], expressions: int) -> list[str]:
    numbers = range(len(effects))
    lines = [
        "def make(T):",
        "    E, NONE = (), str()",
        "    KINDS, CONST, K, W, HASH = T.kinds, T.constants, T.texts, T.words, T.hashes",
        "    merge, clash, clash_anywhere = T.merge, T.clash, T.clash_anywhere",
        "    no_text = T.no_text",
    ]
    lines += [f"    st{n} = T.statics[{n}]" for n in range(len(tables.statics))]
    lines += [f"    x{n} = T.expressions[{n}]" for n in range(expressions)]
    for function in (*tables.functions, *effects):
        lines += [f"    {line}" for line in function]
    lines += [
        f"    CMD = T.commands({_tuple('cmd', numbers)})",
        "    def applicable(s):",
        "        out = {}",
        *(f"        app{n}(s, out)" for n in numbers),
        "        return out",
        f"    return applicable, goal, intro, {_tuple('eff', numbers)}, {_tuple('fb', numbers)}",
    ]
    return lines


def _tuple(name: str, numbers: range) -> str:
    return "(" + "".join(f"{name}{n}, " for n in numbers) + ")"


def _load(source: str) -> Factory:
    if len(source) > MOST_SOURCE:
        raise UnsupportedGame("a game whose code would be too large")
    helpers = {
        "Block": Block,
        "listed": listed,
        "with_pair": with_pair,
        "without_pair": without_pair,
    }
    names: dict[str, Any] = {"__builtins__": {"set": set, "sorted": sorted, "str": str}, **helpers}
    try:
        code = compile(source, "<compiled game>", "exec")
    except (SyntaxError, MemoryError) as error:  # too many nested blocks
        raise UnsupportedGame(f"a game that nests too deeply: {error}") from error
    exec(code, names)
    make: Factory = names["make"]
    return make
