"""A TextWorld grammar: the texts of actions, rules with conditions, and constants."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentic_rl.env.engine.csg import (
    Each,
    Expression,
    Listing,
    Query,
    Rule,
    Symbol,
    Text,
    read_query,
    read_symbols,
)
from agentic_rl.env.engine.errors import UnsafeGame, UnsupportedGame
from agentic_rl.env.engine.expressions import TextExpression

MOST_CHARACTERS = 400_000
MOST_RULES = 2_000
MOST_EXPANSIONS = 10_000

_PART = re.compile(
    r"""\s+|\#[^\n]*|action\s+(?P<action>[\w/-]+)\s*\{|(?P<end>\})|
        (?P<kind>template|feedback)\s*::\s*"(?P<text>[^"]*)"\s*;|
        (?P<block>grammar|pddl)\s*::\s*\"\"\"(?P<body>(?:.|\n)*?)\"\"\"\s*;""",
    re.X,
)
_TASK = re.compile(r'"task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Alternative:
    """One right-hand side of a rule; the first whose query matches is taken."""

    symbols: tuple[Symbol, ...]
    query: Query | None


@dataclass(frozen=True, slots=True)
class ActionText:
    """How an action is commanded, and what it answers."""

    template: tuple[Symbol, ...]
    feedback: tuple[Symbol, ...]


@dataclass(frozen=True)
class Grammar:
    """`constants` are rules of plain text; `structure` says all but what they say."""

    actions: Mapping[str, ActionText]
    rules: Mapping[str, tuple[Alternative, ...]]
    constants: Mapping[str, str]
    structure: str


_known: dict[tuple[str, str], Grammar] = {}
_MOST_KNOWN = 64


def read_grammar(text: str) -> Grammar:
    """The texts of a data set differ in one string, the task, so the rest is read once."""
    task = _TASK.search(text)
    if task is None or text.count('"task"') != 1:
        return _read(text)
    key = (text[: task.start(1)], text[task.end(1) :])
    known = _known.get(key)
    if known is None:
        known = _read(text)
        if known.constants.get("task") == _task(task[1]):
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = known
        return known
    said = _task(task[1])
    if said is None:
        return _read(text)
    return replace(known, constants={**known.constants, "task": said})


def _task(quoted: str) -> str | None:
    try:
        said = json.loads(quoted)
    except ValueError:
        return None
    return plain(read_symbols(said)) if isinstance(said, str) else None


def _read(text: str) -> Grammar:
    if len(text) > MOST_CHARACTERS:
        raise UnsafeGame(f"a grammar of {len(text)} characters")
    texts, rules = _split(text)
    if len(rules) > MOST_RULES:
        raise UnsafeGame(f"a grammar of {len(rules)} rules")
    actions = {name: _action(name, parts) for name, parts in texts.items()}
    code: dict[str, tuple[Alternative, ...]] = {}
    constants: dict[str, str] = {}
    for name, body in rules.items():
        alternatives = tuple(_alternatives(name, body))
        said = plain(alternatives[0].symbols) if len(alternatives) == 1 else None
        if said is None or alternatives[0].query is not None:
            code[name] = alternatives
        else:
            constants[name] = said
    grammar = Grammar(actions, code, constants, repr((actions, code, list(constants))))
    for expression in _expressions(grammar):
        TextExpression(expression.source)
    _check_size(grammar)
    return grammar


def plain(symbols: tuple[Symbol, ...]) -> str | None:
    """The text of symbols that are nothing else."""
    if all(isinstance(symbol, Text) for symbol in symbols):
        return "".join(symbol.text for symbol in symbols if isinstance(symbol, Text))
    return None


def walk(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    """All symbols, inner ones too."""
    for symbol in symbols:
        yield symbol
        if isinstance(symbol, Listing):
            yield from walk([symbol.each])
        elif isinstance(symbol, Each):
            yield symbol.inner


def queries(grammar: Grammar) -> Iterator[Query]:
    """All queries, of rules and within texts."""
    for alternatives in grammar.rules.values():
        for alternative in alternatives:
            if alternative.query is not None:
                yield alternative.query
    for symbol in walk(_all_symbols(grammar)):
        if isinstance(symbol, Each) and symbol.query:
            yield read_query(symbol.query)


def _all_symbols(grammar: Grammar) -> Iterator[Symbol]:
    for action in grammar.actions.values():
        yield from action.template
        yield from action.feedback
    for alternatives in grammar.rules.values():
        for alternative in alternatives:
            yield from alternative.symbols


def _expressions(grammar: Grammar) -> Iterator[Expression]:
    return (found for found in walk(_all_symbols(grammar)) if isinstance(found, Expression))


def _split(text: str) -> tuple[dict[str, dict[str, str]], dict[str, Any]]:
    actions: dict[str, dict[str, str]] = {}
    rules: dict[str, Any] = {}
    current: str | None = None
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            raise UnsupportedGame(f"grammar text near {text[position : position + 40]!r}")
        position = match.end()
        if match["action"]:
            current = match["action"].lower()
            actions[current] = {}
        elif match["end"]:
            current = None
        elif match["kind"]:
            if current is None:
                raise UnsupportedGame(f"a {match['kind']} outside of an action")
            actions[current][match["kind"]] = match["text"]
        elif match["block"] == "grammar":
            rules.update(_rules(match["body"], inside=current is not None))
    return actions, rules


def _rules(body: str, *, inside: bool) -> dict[str, Any]:
    if inside:  # within an action TextWorld drops the lines that begin with #
        body = "\n".join(line for line in body.split("\n") if not line.lstrip().startswith("#"))
    try:
        rules = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnsupportedGame("a grammar block that is no JSON") from error
    if not isinstance(rules, dict):
        raise UnsupportedGame("a grammar block that is no JSON object")
    return rules


def _action(name: str, parts: Mapping[str, str]) -> ActionText:
    if parts.keys() != {"template", "feedback"}:
        raise UnsupportedGame(f"action {name} without a template and a feedback")
    return ActionText(read_symbols(parts["template"]), read_symbols(parts["feedback"]))


def _alternatives(name: str, body: Any) -> Iterator[Alternative]:
    if not isinstance(body, list) or not body:
        raise UnsupportedGame(f"rule {name[:40]!r} without alternatives")
    for entry in body:
        text = entry.get("rhs") if isinstance(entry, dict) else None
        condition = entry.get("condition") or "" if isinstance(entry, dict) else None
        if not isinstance(text, str) or not isinstance(condition, str):
            raise UnsupportedGame(f"rule {name[:40]!r} with a malformed alternative")
        query = read_query(condition) if condition else None
        yield Alternative(read_symbols(text), query)


def _check_size(grammar: Grammar) -> None:
    """A rule may not grow without bound by naming rules that name rules."""
    sizes: dict[str, int] = {}

    def size(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise UnsupportedGame(f"rule {name[:40]!r} names itself")
        if name not in sizes:
            sizes[name] = 1 + max(
                (total(entry.symbols, (*above, name)) for entry in grammar.rules.get(name, ())),
                default=0,
            )
        return sizes[name]

    def total(symbols: tuple[Symbol, ...], above: tuple[str, ...] = ()) -> int:
        count = sum(size(part.name, above) for part in walk(symbols) if isinstance(part, Rule))
        if count > MOST_EXPANSIONS or len(above) > 100:
            raise UnsafeGame("a grammar whose texts grow without bound")
        return count

    for action in grammar.actions.values():
        total((*action.template, *action.feedback))
    for name in grammar.rules:
        size(name, ())
