"""The published ALFWorld games, as `alfworld-download` leaves them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentic_rl.cache import cache_folder
from agentic_rl.errors import ConfigError, GamesError, did_you_mean
from agentic_rl.games import games_sources
from agentic_rl.games.discovery import check_split, game_set
from agentic_rl.games.index import Verdict, discover
from agentic_rl.hashing import stable_hash
from agentic_rl.types import TASK_TYPES, GameSet

SPLITS = ("train", "valid_seen", "valid_unseen", "valid_train")
PUBLISHED = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
"""Games that the published filter keeps of the whole download."""
DATA_FOLDER = "json_2.1.1"
OVER_LIMIT = "over the limit"
OTHER_TYPE_WANTED = "task type not asked for"
_REMEDY = (
    "type `agentic-rl data download`, or set ALFWORLD_DATA to the folder that holds"
    f" {DATA_FOLDER}, or take generated games with games=builtin"
)


@games_sources.register("alfworld")
@dataclass(frozen=True)
class ALFWorldGames:
    """Kept by the published filter: the six types, nothing movable or sliced, solvable."""

    root: str | None = None
    task_types: list[str] = field(default_factory=lambda: list(TASK_TYPES))
    only: list[str] = field(default_factory=list)
    limit: int | None = None

    def __post_init__(self) -> None:
        for task_type in self.task_types:
            if task_type not in TASK_TYPES:
                near = did_you_mean(task_type, TASK_TYPES)
                raise ConfigError(f"unknown task type '{task_type}' in task_types.{near}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit={self.limit} is below 1; null takes every game")

    @property
    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def load(self, split: str) -> GameSet:
        check_split("alfworld", split, SPLITS)
        root = locate(self.root)
        folder = root / split
        try:
            verdicts: Mapping[str, Verdict] = discover(folder)
        except OSError as error:
            raise GamesError(_no_split(root, split, error)) from error
        if self.only:
            verdicts = self._named(root, split, verdicts)
        verdicts = {trial: self._wanted(verdict) for trial, verdict in verdicts.items()}
        return game_set(split, folder, self._limited(verdicts))

    def _wanted(self, verdict: Verdict) -> Verdict:
        if verdict.reason or verdict.task_type in self.task_types:
            return verdict
        return replace(verdict, reason=OTHER_TYPE_WANTED)

    def _limited(self, verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
        """Picks by a hash of the ids: types stay mixed, and a larger limit adds games."""
        if self.limit is None:
            return dict(verdicts)
        kept = [trial for trial, verdict in verdicts.items() if not verdict.reason]
        over = set(sorted(kept, key=lambda trial: (stable_hash(trial), trial))[self.limit :])
        return {
            trial: replace(verdict, reason=OVER_LIMIT) if trial in over else verdict
            for trial, verdict in verdicts.items()
        }

    def _named(self, root: Path, split: str, verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
        """The games named by `only`; each must exist in some split and be playable in this one."""
        chosen: dict[str, Verdict] = {}
        for name in self.only:
            found = [trial for trial in verdicts if trial == name or trial.startswith(f"{name}/")]
            if not found and not any((root / other / name).is_dir() for other in SPLITS):
                folders = {trial.split("/")[0] for trial in verdicts}
                near = did_you_mean(name, [*verdicts, *sorted(folders)])
                raise GamesError(f"games.only names '{name}', which {root} does not hold.{near}")
            for trial in found:
                verdict = verdicts[trial]
                if verdict.reason:
                    why = verdict.detail or f"{root / split / trial}: {verdict.reason}"
                    raise GamesError(f"games.only names a game that cannot be played: {why}")
                chosen[trial] = verdict
        if not chosen:
            raise GamesError(f"games.only names no game of the split '{split}' in {root}")
        return {trial: chosen[trial] for trial in sorted(chosen)}


def locate(root: str | None) -> Path:
    """The folder of the splits: `root`, else $ALFWORLD_DATA, else where `data download` puts it."""
    if root:
        named, origin = Path(root), f"games.root={root}"
    elif os.environ.get("ALFWORLD_DATA"):
        named = Path(os.environ["ALFWORLD_DATA"])
        origin = f"ALFWORLD_DATA={named}"
    else:
        named = download_folder()
        origin = f"games.root and $ALFWORLD_DATA are not set and {named}"
    base = named.expanduser().absolute()
    for folder in (base / DATA_FOLDER, base):
        if any((folder / split).is_dir() for split in SPLITS):
            return folder
    raise GamesError(f"no ALFWorld games: {origin} holds no {DATA_FOLDER}; {_REMEDY}")


def download_folder() -> Path:
    """Where downloaded data goes: $ALFWORLD_DATA, else into the cache."""
    named = os.environ.get("ALFWORLD_DATA")
    return Path(named).expanduser().absolute() if named else cache_folder() / "alfworld"


def _no_split(root: Path, split: str, error: OSError) -> str:
    held = [name for name in SPLITS if (root / name).is_dir()]
    if split in held:
        return f"{root / split} cannot be read: {error.strerror or error}"
    others = ",".join(name for name in held if not name.endswith("train"))
    choose = f"take evaluation.splits=[{others}], " if others and split != "train" else ""
    return f"no split '{split}' in {root}, which holds {', '.join(held)}; {choose}{_REMEDY}"
