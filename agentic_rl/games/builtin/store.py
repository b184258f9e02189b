"""Generated games on disk: a folder a set, laid out as published, made when first asked for.

Beside each split lies its list, `<split>.json`: game number by number, the trial folder and the
digest. The list is written last and alone says what a split holds, so that a set is never half
there; games depend on their number alone, so that a longer split begins with the shorter one.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentic_rl.cache import locked, write_atomic
from agentic_rl.errors import GamesError
from agentic_rl.games.builtin.generator import Game, Generator
from agentic_rl.games.builtin.rooms import GENERATOR_VERSION
from agentic_rl.games.index import GAME_FILE, TRAJ_FILE, Verdict, discover

_MAKING = ".making-"
Row = tuple[str, str]
"""Trial folder and digest of one game."""


@dataclass(frozen=True, slots=True)
class Store:
    """The sets below `root` that one generator makes."""

    root: Path
    generator: Generator

    @property
    def folder(self) -> Path:
        made = self.generator
        version = f"v{GENERATOR_VERSION}-{made.shipped.fingerprint}"
        return self.root / f"{made.difficulty.name}-seed{made.seed}-{version}"

    def games(self, split: str, count: int) -> dict[str, Verdict]:
        """The first `count` games by trial folder, sorted; made where they are missing."""
        found = self._sound(split, count)
        if len(found) < count:
            try:
                with locked(self.folder / ".lock"):
                    self._complete(split, count)
            except OSError as error:
                raise GamesError(
                    f"generated games cannot be written to {self.folder}:"
                    f" {error.strerror or error};"
                    " name another folder with games.root=PATH or $AGENTIC_RL_CACHE"
                ) from error
            found = self._sound(split, count)
        if len(found) < count:
            raise GamesError(f"the generated games in {self.folder} change while they are read")
        return {trial: found[trial] for trial in sorted(found)}

    def _sound(self, split: str, count: int) -> dict[str, Verdict]:
        """Those of the first `count` listed games whose files are what the list says."""
        rows = self._rows(split)[:count]
        verdicts = discover(self.folder / split, [trial for trial, _ in rows])
        return {
            trial: verdicts[trial]
            for trial, digest in rows
            if trial in verdicts and not verdicts[trial].reason and verdicts[trial].digest == digest
        }

    def _complete(self, split: str, count: int) -> None:
        """Makes what is missing or damaged. Call it under the lock."""
        for stale in self.folder.glob(f"{_MAKING}*"):
            shutil.rmtree(stale)
        rows = self._rows(split)
        sound = self._sound(split, count)
        wanted = [i for i in range(count) if i >= len(rows) or rows[i][0] not in sound]
        if not wanted:
            return
        with tempfile.TemporaryDirectory(prefix=_MAKING, dir=self.folder) as making:
            made = {number: self._make(Path(making), split, number) for number in wanted}
            self._install(Path(making, split), self.folder / split)
        rows = [made.get(i) or rows[i] for i in range(max(count, len(rows)))]
        self._write_rows(split, rows)

    def _make(self, making: Path, split: str, number: int) -> Row:
        game = self.generator.game(split, number)
        trial = making / split / game.trial
        if not _holds(self.folder / split / game.trial, game):
            trial.mkdir(parents=True)
            (trial / GAME_FILE).write_bytes(game.game_file)
            (trial / TRAJ_FILE).write_bytes(game.traj_file)
        return game.trial, hashlib.sha256(game.game_file).hexdigest()

    def _install(self, made: Path, split: Path) -> None:
        """In one step where the split is new, else trial by trial."""
        if not made.exists():
            return
        if not split.exists():
            made.rename(split)
            return
        for trial in made.glob("*/*"):
            target = split / trial.relative_to(made)
            target.parent.mkdir(exist_ok=True)
            if target.exists():
                shutil.rmtree(target)
            trial.rename(target)

    def _rows(self, split: str) -> list[Row]:
        """The list as far as it can be read: games are made again where it is damaged."""
        try:
            games = json.loads((self.folder / f"{split}.json").read_bytes())["games"]
            rows = [(str(trial), str(digest)) for trial, digest in games]
        except (OSError, ValueError, TypeError, LookupError):
            return []
        return rows

    def _write_rows(self, split: str, rows: Sequence[Row]) -> None:
        made = self.generator
        content = {
            "generated": {
                "by": "agentic-rl",
                "version": GENERATOR_VERSION,
                "difficulty": made.difficulty.name,
                "seed": made.seed,
                "alfworld": made.shipped.fingerprint,
            },
            "games": rows,
        }
        write_atomic(self.folder / f"{split}.json", json.dumps(content, indent=1).encode())


def _holds(trial: Path, game: Game) -> bool:
    try:
        return (trial / GAME_FILE).read_bytes() == game.game_file and (
            trial / TRAJ_FILE
        ).read_bytes() == game.traj_file
    except OSError:
        return False
