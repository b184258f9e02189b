"""What every trial folder of a split holds, remembered in the cache between discoveries."""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rl.cache import cache_folder, write_atomic
from agentic_rl.types import TASK_TYPES

GAME_FILE = "game.tw-pddl"
TRAJ_FILE = "traj_data.json"

MOVABLE_OR_SLICED = "movable or sliced"
NO_TRAJ_DATA = f"no {TRAJ_FILE}"
NO_GAME_FILE = f"no {GAME_FILE}"
OTHER_TYPE = "another task type"
NOT_SOLVABLE = "not solvable"
UNREADABLE = "unreadable"

_FORMAT = 1
_FRESH_NS = 50_000_000
_ABSENT = (-1, -1, -1)
_DENIED = (-2, -2, -2)
Marks = tuple[int, ...]
"""Size, modification and change time of a trial's two files: if one differs, both are read."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one trial folder holds; a `reason` says why it is left out."""

    reason: str = ""
    detail: str = ""
    task_type: str = ""
    digest: str = ""
    walkthrough: tuple[str, ...] = ()


def discover(folder: Path, trials: Iterable[str] | None = None) -> dict[str, Verdict]:
    """A verdict for each trial below `folder`, sorted by its POSIX path `<task folder>/<trial>`.

    With `trials`, for those alone: nothing else is looked at. Raises OSError where `folder` itself
    cannot be listed.
    """
    found = scan(folder) if trials is None else scan_trials(folder, trials)
    store = _store(folder)
    known = _read(store)
    verdicts: dict[str, Verdict] = {}
    fresh: dict[str, tuple[Marks, Verdict]] = {}
    for trial in sorted(found):
        marks = found[trial]
        entry = known.get(trial)
        if entry is None or entry[0] != marks:
            entry = (marks, judge(folder, trial, marks))
            # A file this new may change again under the same time stamp: look at it once more.
            if max(marks) < time.time_ns() - _FRESH_NS:
                fresh[trial] = entry
        verdicts[trial] = entry[1]
    kept = {trial: known[trial] for trial in known if trials is not None or trial in found}
    if fresh or len(kept) != len(known):
        # The index only saves time: where it cannot be kept, discovery works without.
        with contextlib.suppress(OSError):
            write_atomic(store, _encode(folder, {**kept, **fresh}))
    return verdicts


def scan(folder: Path) -> dict[str, Marks]:
    """The trial folders two levels below `folder` that hold a game or its task data."""
    found: dict[str, Marks] = {}
    with os.scandir(folder) as entries:
        tasks = [entry.name for entry in entries if entry.is_dir()]
    base = str(folder)
    for task in tasks:
        try:
            with os.scandir(f"{base}/{task}") as entries:
                trials = [f"{task}/{entry.name}" for entry in entries if entry.is_dir()]
        except OSError:
            found[task] = _DENIED * 2
            continue
        found.update(scan_trials(folder, trials))
    return found


def scan_trials(folder: Path, trials: Iterable[str]) -> dict[str, Marks]:
    base = str(folder)
    found: dict[str, Marks] = {}
    for trial in trials:
        place = f"{base}/{trial}"
        marks = _marks(f"{place}/{GAME_FILE}") + _marks(f"{place}/{TRAJ_FILE}")
        if marks != _ABSENT * 2:
            found[trial] = marks
    return found


def judge(folder: Path, trial: str, marks: Marks) -> Verdict:
    """The published filter, in ALFWorld's own order."""
    if "movable" in trial or "Sliced" in trial:
        return Verdict(MOVABLE_OR_SLICED)
    if _DENIED[0] in marks:
        return Verdict(UNREADABLE, detail=f"{folder / trial} cannot be opened")
    if marks[3] < 0:
        return Verdict(NO_TRAJ_DATA)
    try:
        task_type = _load(folder / trial / TRAJ_FILE)[1].get("task_type")
        if task_type not in TASK_TYPES:
            return Verdict(OTHER_TYPE, detail=str(task_type))
        if marks[0] < 0:
            return Verdict(NO_GAME_FILE)
        digest, game = _load(folder / trial / GAME_FILE)
        return _judge_game(task_type, digest, game)
    except (OSError, ValueError, RecursionError) as error:
        return Verdict(UNREADABLE, detail=f"{folder / trial}: {error}".splitlines()[0])


def _judge_game(task_type: str, digest: str, game: Mapping[str, Any]) -> Verdict:
    if game.get("solvable") is not True:
        return Verdict(NOT_SOLVABLE)
    for key in ("pddl_domain", "grammar", "pddl_problem"):
        if not isinstance(game.get(key), str):
            raise ValueError(f"{GAME_FILE} holds no text under '{key}'")
    walkthrough = game.get("walkthrough", [])
    if not isinstance(walkthrough, list) or not all(isinstance(c, str) for c in walkthrough):
        raise ValueError(f"the walkthrough in {GAME_FILE} is not a list of commands")
    return Verdict(task_type=task_type, digest=digest, walkthrough=tuple(walkthrough))


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    content = path.read_bytes()
    try:
        loaded = json.loads(content)
    except ValueError as error:
        raise ValueError(f"{path.name} is not JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise ValueError(f"{path.name} holds no JSON object")
    return hashlib.sha256(content).hexdigest(), loaded


def _marks(path: str) -> tuple[int, int, int]:
    try:
        stat = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _ABSENT
    except OSError:
        return _DENIED
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _store(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return cache_folder() / "index" / f"{name}.json"


def _encode(folder: Path, entries: Mapping[str, tuple[Marks, Verdict]]) -> bytes:
    trials = {
        trial: [*marks, v.reason, v.detail, v.task_type, v.digest, v.walkthrough]
        for trial, (marks, v) in sorted(entries.items())
    }
    return json.dumps({"format": _FORMAT, "folder": str(folder), "trials": trials}).encode()


def _read(store: Path) -> dict[str, tuple[Marks, Verdict]]:
    """What is remembered; nothing where the index is missing, foreign or damaged."""
    try:
        content = json.loads(store.read_bytes())
        if content["format"] != _FORMAT:
            return {}
        return {trial: _entry(row) for trial, row in content["trials"].items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}


def _entry(row: list[Any]) -> tuple[Marks, Verdict]:
    *marks, reason, detail, task_type, digest, walkthrough = row
    texts = (reason, detail, task_type, digest, *walkthrough)
    if len(marks) != 6 or not all(isinstance(text, str) for text in texts):
        raise ValueError("not an entry of the index")
    return tuple(marks), Verdict(reason, detail, task_type, digest, tuple(walkthrough))
