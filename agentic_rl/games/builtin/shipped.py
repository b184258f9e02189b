"""The parts of the alfworld package that games are made of: read as files, never imported or run.

Importing alfworld would create a folder in the user's home and set an environment variable.
"""

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentic_rl.errors import GamesError

GOAL_PLACEHOLDER = "UNKNOWN GOAL"
_TABLES = ("DiningTable", "CoffeeTable", "SideTable")
_NEEDED = (
    "VAL_RECEPTACLE_OBJECTS",
    "VAL_ACTION_OBJECTS",
    "MOVABLE_RECEPTACLES",
    "RECEPTACLES",
    "OPENABLE_CLASS_LIST",
    "GOALS_VALID",
)


@dataclass(frozen=True, slots=True)
class Goal:
    """One task type: its goal in PDDL and its task sentences, both with `{obj}`, `{recep}`, ..."""

    pddl: str
    templates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """What the shipped tables say of one room; positions are (x, z, rotation, horizon)."""

    kinds: tuple[str, ...]
    placed: Mapping[str, tuple[float, float, float, float]]
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Shipped:
    """Domain, grammar and tables; `fingerprint` changes when the package's files do."""

    root: Path
    domain: str
    grammar: str
    can_hold: Mapping[str, tuple[str, ...]]
    affords: Mapping[str, frozenset[str]]
    movable: frozenset[str]
    receptacles: frozenset[str]
    openable: frozenset[str]
    rooms_for: Mapping[str, frozenset[str]]
    goals: Mapping[str, Goal]
    fingerprint: str

    @classmethod
    def load(cls, root: Path | None = None) -> "Shipped":
        root = root or _package_folder()
        files = ("data/alfred.pddl", "data/alfred.twl2", "gen/constants.py", "gen/goal_library.py")
        try:
            domain, grammar, constants, goals = (
                (root / name).read_text(encoding="utf-8") for name in files
            )
            tables = _literals(constants)
            return cls._from_tables(root, domain, grammar, tables, _goals(goals))
        except (OSError, ValueError, LookupError, SyntaxError) as error:
            raise GamesError(
                f"the alfworld package in {root} is not one that games can be made of ({error});"
                " type: pip install 'alfworld>=0.4.2,<0.5'"
            ) from error

    @classmethod
    def _from_tables(
        cls,
        root: Path,
        domain: str,
        grammar: str,
        tables: Mapping[str, Any],
        goals: dict[str, Goal],
    ) -> "Shipped":
        if GOAL_PLACEHOLDER not in grammar:
            raise ValueError("alfred.twl2 has no place for the goal")
        movable = frozenset(tables["MOVABLE_RECEPTACLES"])
        holds = dict(tables["VAL_RECEPTACLE_OBJECTS"])
        on_tables = holds.pop("TableTop")
        holds |= dict.fromkeys(_TABLES, on_tables)
        can_hold = {
            kind: tuple(sorted(name for name in held if not name.endswith("Sliced")))
            for kind, held in sorted(holds.items())
        }
        parts = (domain, grammar, *(_canonical(tables[name]) for name in _NEEDED))
        parts += tuple(f"{task}{goal}" for task, goal in sorted(goals.items()))
        return cls(
            root=root,
            domain=domain,
            grammar=grammar,
            can_hold=can_hold,
            affords={
                verb: frozenset(names) for verb, names in tables["VAL_ACTION_OBJECTS"].items()
            },
            movable=movable,
            receptacles=frozenset(tables["RECEPTACLES"]) - movable,
            openable=frozenset(tables["OPENABLE_CLASS_LIST"]) - {"Box"},
            rooms_for={task: frozenset(rooms) for task, rooms in tables["GOALS_VALID"].items()},
            goals=goals,
            fingerprint=hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:8],
        )

    def layout(self, scene: int) -> Layout:
        import numpy as np

        base = self.root / "gen" / "layouts" / f"FloorPlan{scene}"
        kinds = json.loads(Path(f"{base}-objects.json").read_bytes())
        placed = json.loads(Path(f"{base}-openable.json").read_bytes())
        points = np.load(f"{base}-layout.npy", allow_pickle=False)
        return Layout(
            kinds=tuple(sorted(kinds)),
            placed={name: tuple(place) for name, place in sorted(placed.items())},
            points=tuple(sorted((float(x), float(z)) for x, z in points)),
        )


def _package_folder() -> Path:
    spec = find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise GamesError("the alfworld package is not installed; type: pip install alfworld")
    return Path(next(iter(spec.submodule_search_locations)))


def _literals(source: str) -> dict[str, Any]:
    """The tables of constants.py, where each is one literal."""
    found = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        if node.targets[0].id in _NEEDED:
            found[node.targets[0].id] = ast.literal_eval(node.value)
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise ValueError(f"constants.py holds no {missing[0]}")
    return found


def _canonical(table: Any) -> str:
    """The table in sorted order: sets are listed differently from run to run."""
    if isinstance(table, dict):
        return str([(key, _canonical(table[key])) for key in sorted(table)])
    return str(sorted(table))


def _goals(source: str) -> dict[str, Goal]:
    """`gdict["task"] = {"pddl": ..., "templates": [...]}`, one literal a task."""
    goals = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            entry = ast.literal_eval(node.value)
            task = ast.literal_eval(node.targets[0].slice)
            goals[task] = Goal(entry["pddl"], tuple(entry["templates"]))
    return goals
