"""The right-hand sides of a TextWorld grammar, read exactly as TextWorld reads them.

Leading white space is lost, a tab before a symbol too, and reading stops silently at the first
character that fits nothing.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agentic_rl.env.engine.errors import UnsupportedGame


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """`#name#`: the text of a rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Expression:
    """`{r.name}`: text about an object."""

    source: str


@dataclass(frozen=True, slots=True)
class Each:
    """`{inner | query}`: the inner symbol for each match of the query, or once."""

    inner: Rule | Expression
    query: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """`[{inner | query}]`: the same, worded as a list."""

    each: Each


Symbol: TypeAlias = Text | Rule | Expression | Each | Listing
Placeholder: TypeAlias = tuple[str, str]
"""(name, type)"""
Query: TypeAlias = tuple[tuple[str, tuple[Placeholder, ...]], ...]
"""A conjunction of (predicate, placeholders)."""

_END_OF_LINE = re.compile(r"^(//.*|\s*)\n?", re.M)
_TABS = re.compile(r"[\t]+")
_RULE_NAME = re.compile(r"[\w()/!<>\-\s,.]+")
_QUERY = re.compile(r"[^;|{}\n\[\]#]+")
_BAR = re.compile(r"\s*\|\s*")
_EXPRESSION = re.compile(r"[^|\[\]{}\n<>]+")
_TEXT = re.compile(r'[^;|"<>\[\]#{}]*')
_ATOM = re.compile(r"\s*([\w\-@]+)\s*\(([^()]*)\)\s*(&|$)")


class _NoMatch(Exception):
    """The text does not go on as tried."""


def read_symbols(text: str) -> tuple[Symbol, ...]:
    return tuple(_Reader(text).symbols())


def read_query(text: str) -> Query:
    """`p(a:agent, l) & q(l)`; a placeholder without a type is of the type that its name says."""
    found: list[tuple[str, tuple[Placeholder, ...]]] = []
    position, text = 0, text.strip()
    while position < len(text):
        match = _ATOM.match(text, position)
        if match is None:
            raise UnsupportedGame(f"a query that cannot be read: {text[:60]!r}")
        found.append((match[1], tuple(map(_placeholder, filter(str.strip, match[2].split(","))))))
        position = match.end()
    return tuple(found)


def _placeholder(text: str) -> Placeholder:
    name, _, kind = (part.strip() for part in text.partition(":"))
    return name, kind or name.rstrip("'")


class _Reader:
    """A cursor over one text; a method that finds nothing raises _NoMatch and moves nothing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def symbols(self) -> list[Symbol]:
        found: list[Symbol] = []
        while True:
            before = self._at
            symbol = self._first(self._listing, self._each, self._rule, self._plain)
            if symbol is None or (self._at == before and found):
                return found
            found.append(symbol)
            if self._at == before:
                return found

    def _first(self, *attempts: Callable[[], Symbol]) -> Symbol | None:
        for attempt in attempts:
            before = self._at
            try:
                return attempt()
            except _NoMatch:
                self._at = before
        return None

    def _listing(self) -> Listing:
        self._mark("[")
        each = self._each()
        self._mark("]")
        return Listing(each)

    def _each(self) -> Each:
        self._mark("{")
        inner = self._first(self._rule, self._expression)
        if not isinstance(inner, Rule | Expression):
            raise _NoMatch
        query = self._given()
        self._mark("}")
        return Each(inner, query)

    def _given(self) -> str | None:
        bar = _BAR.match(self._text, self._at)
        if bar is None:
            return None
        before, self._at = self._at, bar.end()
        try:
            self._skip()
            return self._take(_QUERY)
        except _NoMatch:
            self._at = before
            return None

    def _rule(self) -> Rule:
        self._mark("#")
        self._skip()
        name = self._take(_RULE_NAME)
        self._mark("#")
        return Rule(name)

    def _expression(self) -> Expression:
        self._skip()
        return Expression(self._take(_EXPRESSION))

    def _plain(self) -> Text:
        self._skip()
        start = self._at
        if self._text.startswith('"', start):
            match = _TEXT.match(self._text, start + 1)
            if match is not None:
                self._at = match.end()
                try:
                    self._mark('"')
                    return Text(match.group())
                except _NoMatch:
                    self._at = start
        return Text(self._take(_TEXT))

    def _skip(self) -> None:
        """Comments, white space at the start of a line, tabs."""
        while True:
            before = self._at
            for pattern in (_END_OF_LINE, _TABS):
                # Each as often as it matches something, before the next one is tried.
                while (match := pattern.match(self._text, self._at)) and match.group():
                    self._at = match.end()
            if self._at == before:
                return

    def _mark(self, character: str) -> None:
        self._skip()
        if not self._text.startswith(character, self._at):
            raise _NoMatch
        self._at += 1

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _NoMatch
        self._at = match.end()
        return match.group()
