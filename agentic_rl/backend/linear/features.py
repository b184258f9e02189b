"""Hashed features of a command in a state. One row a command; rows that agree are built once."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rl.backend.linear.history import Command, Goal, History, command_of

VERSION = 1
"""Part of every checkpoint: weights mean nothing under other features."""

Columns = NDArray[np.int32]
"""[feature, command]: indices into the weights."""

Row = tuple[str, ...]
ROWS = 250_000
"""Rows remembered; then the memory starts anew, which changes no result."""

_TIMES = ("0", "1", "2", "3")


class State:
    """What all commands of one turn share."""

    __slots__ = ("history", "key", "wanted")

    def __init__(self, history: History, actions: tuple[str, ...]) -> None:
        self.history = history
        goal = history.goal
        held = history.held or _held_by_list(actions)
        processed = goal.kind not in ("clean", "heat", "cool") or (
            (held, goal.kind) in history.processed
        )
        self.wanted = {
            place
            for thing, place in history.where.items()
            if goal.match(thing) == "t" and thing not in history.delivered
        }
        phase = (
            goal.kind,
            goal.match(held),
            "done" if processed else "raw",
            str(min(len(history.delivered), 2)),
        )
        signs = (
            "closed" if history.place in history.closed else "open",
            "known" if self.wanted else "unknown",
            "here" if history.place in self.wanted else "away",
        )
        self.key = (*phase, *signs, history.last, str(history.refused), goal.target)


def _held_by_list(actions: tuple[str, ...]) -> str:
    """Only what is held can be moved, so the list tells where the history does not."""
    for action in actions:
        if action.startswith("move "):
            return command_of(action).thing
    return ""


def describe(state: State, command: Command, static: Row, text: str) -> Row:
    """What sets one command apart from the others of its turn; all that its features may read."""
    history = state.history
    place = command.place
    return (
        *static,
        "p" if command.thing in history.delivered else "-",
        _TIMES[min(history.given.get(text, 0), 3)],
        _TIMES[min(history.visits.get(place, 0), 2)] if command.verb == "go" else "-",
        "k" if place in state.wanted else "-",
    )


def describe_text(goal: Goal, command: Command, form: str) -> Row:
    """The part that the goal and the command's own text decide."""
    return form, command.verb, goal.match(command.thing), goal.match(command.place), command.type


def names(key: Row, row: Row) -> tuple[str, ...]:
    """The features of one command, by name."""
    kind, held, raw, count, closed, known, here, last, refused, target = key
    form, verb, thing, goal_place, type_, delivered, given, visits, has = row
    phase = f"{kind}|{held}|{raw}|{count}"
    what = f"{form}|{verb}|{thing}{delivered}|{goal_place}"
    return (
        f"0|{form}|{verb}",
        f"1|{what}",
        f"2|{phase}|{what}",
        f"3|{what}|{given}",
        f"4|{phase}|{what}|{given}",
        f"5|{last}|{refused}|{what}",
        f"6|{verb}|{type_}",
        f"7|{kind}|{held}|{raw}|{verb}|{type_}",
        f"8|{target}|{held}|{verb}|{type_}",
        f"9|{verb}|{visits}|{has}|{held}|{raw}",
        f"10|{closed}|{known}|{here}|{what}",
        f"11|{held}|{raw}|{known}|{here}|{what}|{visits}|{has}",
    )


WIDTH = len(names(("",) * 10, ("",) * 9))


class FeatureTable:
    """Hashes features; commands of one signature share a row, which is built once."""

    def __init__(self, bits: int, limit: int = ROWS) -> None:
        self.size = 1 << bits
        self._limit = limit
        self._forget()

    def columns(self, state: State, commands: Sequence[tuple[str, str]]) -> Columns:
        """One column a (command, form)."""
        if self._count > self._limit:
            self._forget()
        known = self._rows.setdefault(state.key, {})
        texts = self._texts.setdefault(state.history.goal, {})
        ids = []
        for pair in commands:
            static = texts.get(pair)
            if static is None:
                command = command_of(pair[0])
                static = texts[pair] = command, describe_text(state.history.goal, command, pair[1])
            row = describe(state, *static, pair[0])
            number = known.get(row)
            if number is None:
                number = known[row] = self._add(names(state.key, row))
            ids.append(number)
        return self._table[:, ids]

    def _forget(self) -> None:
        self._table = np.zeros((WIDTH, 1024), dtype=np.int32)
        self._count = 0
        self._rows: dict[Row, dict[Row, int]] = {}
        self._texts: dict[Goal, dict[tuple[str, str], tuple[Command, Row]]] = {}

    def _add(self, features: Row) -> int:
        if self._count == self._table.shape[1]:
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
        self._table[:, self._count] = [
            zlib.crc32(name.encode()) & (self.size - 1) for name in features
        ]
        self._count += 1
        return self._count - 1
