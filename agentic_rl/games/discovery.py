"""From verdicts to the games of a split, with every exclusion counted by its reason."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentic_rl.errors import GamesError, did_you_mean
from agentic_rl.games.index import GAME_FILE, UNREADABLE, Verdict
from agentic_rl.types import GameSet, Task


def game_set(split: str, folder: Path, verdicts: Mapping[str, Verdict]) -> GameSet:
    """All that is not excluded, in the order of `verdicts`; GamesError where that is nothing."""
    excluded = Counter(verdict.reason for verdict in verdicts.values() if verdict.reason)
    base = str(folder)
    tasks = tuple(
        Task(
            task_id=trial,
            split=split,
            task_type=verdict.task_type,
            game_file=f"{base}/{trial}/{GAME_FILE}",
            digest=verdict.digest,
            walkthrough=verdict.walkthrough,
        )
        for trial, verdict in verdicts.items()
        if not verdict.reason
    )
    if not tasks:
        raise GamesError(_nothing_left(folder, verdicts, excluded))
    return GameSet(split, tasks, dict(sorted(excluded.items())))


def check_split(source: str, split: str, splits: Sequence[str]) -> None:
    if split not in splits:
        raise GamesError(
            f"no split '{split}' in games '{source}'.{did_you_mean(split, splits)}"
            f" Splits: {', '.join(splits)}."
        )


def counted(excluded: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(excluded.items()))


def _nothing_left(
    folder: Path, verdicts: Mapping[str, Verdict], excluded: Mapping[str, int]
) -> str:
    if not verdicts:
        return f"no games in {folder}: they lie in <task folder>/<trial>/{GAME_FILE}"
    first = _first_detail(verdicts.values())
    return f"no game in {folder} can be played: {counted(excluded)}{first}"


def _first_detail(verdicts: Iterable[Verdict]) -> str:
    details = (verdict.detail for verdict in verdicts if verdict.reason == UNREADABLE)
    first = next(details, "")
    return f"; the first unreadable one is {first}" if first else ""
