"""Generated games in ALFWorld's format: no download, as many as asked for, the same anywhere."""

from dataclasses import dataclass
from pathlib import Path

from agentic_rl.cache import cache_folder
from agentic_rl.errors import ConfigError, GamesError, did_you_mean
from agentic_rl.games import games_sources
from agentic_rl.games.builtin.difficulty import DIFFICULTIES
from agentic_rl.games.discovery import check_split, game_set
from agentic_rl.types import GameSet

_SPLITS = ("train", "valid_seen", "valid_unseen")


@games_sources.register("builtin")
@dataclass(frozen=True)
class BuiltinGames:
    """Game number i depends on (seed, difficulty, split, i) alone: asking for more adds to the set.

    train and valid_seen share rooms but no task; valid_unseen has rooms of its own.
    """

    seed: int = 0
    difficulty: str = "normal"
    train: int = 640
    valid_seen: int = 140
    valid_unseen: int = 134
    root: str | None = None

    def __post_init__(self) -> None:
        if self.difficulty not in DIFFICULTIES:
            near = did_you_mean(self.difficulty, DIFFICULTIES)
            known = ", ".join(DIFFICULTIES)
            raise ConfigError(f"difficulty={self.difficulty} is not one of {known}.{near}")
        for split in _SPLITS:
            if self._count(split) < 0:
                raise ConfigError(f"{split}={self._count(split)} is below 0")

    @property
    def splits(self) -> tuple[str, ...]:
        return _SPLITS

    def load(self, split: str) -> GameSet:
        from agentic_rl.games.builtin.generator import shared_generator
        from agentic_rl.games.builtin.store import Store

        check_split("builtin", split, _SPLITS)
        if not self._count(split):
            raise GamesError(f"games 'builtin' has no game in '{split}': type games.{split}=N")
        root = Path(self.root).expanduser() if self.root else cache_folder() / "games"
        store = Store(root.absolute(), shared_generator(self.seed, self.difficulty))
        return game_set(split, store.folder / split, store.games(split, self._count(split)))

    def _count(self, split: str) -> int:
        counts = {
            "train": self.train,
            "valid_seen": self.valid_seen,
            "valid_unseen": self.valid_unseen,
        }
        return counts[split]
