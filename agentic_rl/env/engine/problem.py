"""A PDDL problem: objects, the facts at the start, the goal."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentic_rl.env.engine.errors import UnsupportedGame
from agentic_rl.env.engine.sexp import Tree, branch, clean, head, read, word

MOST_OBJECTS = 5_000
MOST_FACTS = 50_000

_SECTION = re.compile(r"\(\s*:([a-z\-]*)")
_COST = re.compile(r"\(\s*=\s*\([^()]*\)\s*\d+\s*\)")
_FACT = re.compile(r"\(([^()]*)\)")
_OBJECTS = re.compile(r"\(:objects([^()]*)\)")
_NAMES = re.compile(r"[a-z0-9_@.,+\-\s]*")
_ORDER = ["domain", "objects", "init", "goal"]
_LOGIC = ("and", "or", "not", "imply")


@dataclass(frozen=True, slots=True)
class Problem:
    """`objects` maps each id to its type; a fact is its predicate and its arguments."""

    objects: Mapping[str, str]
    facts: tuple[tuple[str, ...], ...]
    goal: Tree


def read_problem(text: str) -> Problem:
    """Reads the one layout that planners' problem files have; the rest is refused."""
    text = clean(text)
    sections = _SECTION.findall(text)
    if [name for name in sections if name not in ("requirements", "metric")] != _ORDER:
        raise UnsupportedGame(f"a problem with the sections {', '.join(sections)[:80]}")
    declared = _OBJECTS.search(text)
    start, end = text.find("(:init"), text.find("(:goal")
    if declared is None or not declared.end() <= start < end:
        raise UnsupportedGame("a problem laid out in an unknown way")
    if not _NAMES.fullmatch(declared[1]):
        raise UnsupportedGame("an object whose name is no identifier")
    pairs = _pairs(declared[1].split())
    objects = dict(pairs)
    if len(objects) != len(pairs) or len(pairs) > MOST_OBJECTS:
        raise UnsupportedGame("an object declared twice, or too many objects")
    if not objects.keys().isdisjoint(("i", "p")):
        raise UnsupportedGame("an object called i or p, which TextWorld renames")
    return Problem(objects, _facts(text[start + 6 : end]), _goal(text[end:]))


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    """`typed_list` for words that are known to be names: there are hundreds in every game."""
    found: list[tuple[str, str]] = []
    pending: list[str] = []
    rest = iter(words)
    for word_ in rest:
        if word_ != "-":
            pending.append(word_)
            continue
        kind = next(rest, "-")
        found += [(name, kind) for name in pending]
        pending = []
    return found + [(name, "object") for name in pending]


def _facts(text: str) -> tuple[tuple[str, ...], ...]:
    if "=" in text:
        text = _COST.sub("", text)  # costs and distances: TextWorld drops them too
    if _FACT.sub("", text).strip() != ")":
        raise UnsupportedGame("something else than facts in :init")
    facts = tuple([tuple(fact.split()) for fact in _FACT.findall(text)])
    if len(facts) > MOST_FACTS or not all(facts):
        raise UnsupportedGame("an empty fact, or too many facts")
    return facts


def _goal(text: str) -> Tree:
    goal = branch(read("(" + text)[0])[0]
    if head(goal) != ":goal" or len(branch(goal)) != 2:
        raise UnsupportedGame("a malformed goal")
    return branch(goal)[1]


def abstract(goal: Tree, constants: list[str]) -> Tree:
    """The goal with `$0`, `$1` ... for its constants, which are appended to `constants`."""
    if not branch(goal):
        return []
    kind, *rest = branch(goal)
    name = head(goal)
    if name in ("exists", "forall"):
        if len(rest) != 2:
            raise UnsupportedGame("a malformed goal")
        return [kind, rest[0], abstract(rest[1], constants)]
    if name in _LOGIC:
        return [kind, *(abstract(part, constants) for part in rest)]
    return [kind, *(_placeholder(term, constants) for term in rest)]


def _placeholder(term: Tree, constants: list[str]) -> Tree:
    if isinstance(term, str) and term.startswith("?"):
        return term
    constants.append(word(term))
    return f"${len(constants) - 1}"
