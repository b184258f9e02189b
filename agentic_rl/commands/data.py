"""`agentic-rl data stats|download`: what games there are, and where to get them."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from agentic_rl.errors import GamesError, UsageError, did_you_mean

if TYPE_CHECKING:
    from rich.table import Table

    from agentic_rl.interfaces import Games
    from agentic_rl.types import GameSet

HELP = "Count the games (`data stats games=alfworld`), or download the published ones."
HYDRA = False

_SCRIPT = "alfworld-download"
_ACTIONS = ("stats", "download")
_FLAGS = ("--help", "--games", "--root", "--to", "--force")
_TRACEBACK = b"Traceback (most recent call last)"


def main(argv: list[str]) -> int:
    parser = _parser()
    if argv and not argv[0].startswith("-") and argv[0] not in _ACTIONS:
        raise UsageError(
            f"`agentic-rl data` does not know '{argv[0]}'.{did_you_mean(argv[0], _ACTIONS)}"
            f" Known: {', '.join(_ACTIONS)}."
        )
    args = parser.parse_args(argv)
    if args.action == "stats":
        return stats(_overrides(args))
    return download(args.to, force=args.force)


class _Parser(argparse.ArgumentParser):
    """argparse's usage lines and exit become one line."""

    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0].split("=")[0]
        if unknown:
            near = did_you_mean(unknown, _FLAGS)
            message = f"unknown flag '{unknown}'.{near}"
        raise UsageError(f"{message.rstrip('.')}. See `{self.prog} --help`.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="agentic-rl data", description=HELP)
    actions = parser.add_subparsers(dest="action", required=True, metavar="stats|download")
    counting = actions.add_parser("stats", help="count games by split and type, and exclusions")
    counting.add_argument("--games", metavar="NAME", help="the same as games=NAME")
    counting.add_argument("--root", metavar="PATH", help="the same as games.root=PATH")
    counting.add_argument(
        "overrides",
        nargs="*",
        metavar="KEY=VALUE",
        help="games=NAME (alfworld if unsaid), +recipe=NAME, or an option of the games",
    )
    loading = actions.add_parser("download", help=f"fetch the published games by {_SCRIPT}")
    loading.add_argument(
        "--to", metavar="PATH", help="where to; else $ALFWORLD_DATA, else the cache folder"
    )
    loading.add_argument("--force", action="store_true", help="even if they are there already")
    return parser


def _overrides(args: argparse.Namespace) -> list[str]:
    """In Hydra's words. Nothing but the games matters here, so `train=20` is `games.train=20`."""
    overrides = [
        f"games.{word}" if word.partition("=")[0].isidentifier() and not _is_family(word) else word
        for word in args.overrides
    ]
    if args.games is not None:
        overrides.append(f"games={args.games}")
    if not any(word.startswith(("games=", "+recipe=")) for word in overrides):
        overrides.insert(0, "games=alfworld")
    if args.root is not None:
        quoted = args.root.replace("\\", "\\\\").replace("'", "\\'")
        overrides.append(f"games.root='{quoted}'")
    return overrides


def _is_family(word: str) -> bool:
    from agentic_rl.config import FAMILIES

    return word.partition("=")[0] in FAMILIES


def stats(overrides: Sequence[str]) -> int:
    """Prints what the games of this configuration are."""
    from omegaconf import OmegaConf
    from rich.console import Console

    from agentic_rl.compose import compose
    from agentic_rl.config import Experiment
    from agentic_rl.games import games_sources

    cfg = compose("train", overrides)
    spec = Experiment.from_cfg(OmegaConf.to_container(cfg)).games
    loaded, missing = _load(games_sources.build(spec))
    console = Console(highlight=False, soft_wrap=True)
    console.print(_title(spec, next(iter(loaded.values()))), markup=False)
    console.print(_table(loaded))
    for line in (*_panels(loaded), *_published(spec, loaded), *missing):
        console.print(line, markup=False)
    return 0


def _load(games: "Games") -> tuple[dict[str, "GameSet"], list[str]]:
    """The splits that can be loaded, and why the others cannot; GamesError where none can."""
    loaded: dict[str, GameSet] = {}
    failures: list[GamesError] = []
    for split in games.splits:
        try:
            loaded[split] = games.load(split)
        except GamesError as error:
            failures.append(error)
    if not loaded:
        raise failures[0]
    absent = [name for name in games.splits if name not in loaded]
    reasons = [str(error).partition(";")[0] for error in failures]
    return loaded, [f"{name}: {text}" for name, text in zip(absent, reasons, strict=True)]


def _title(spec: Mapping[str, object], first: "GameSet") -> str:
    task = first.tasks[0]
    path = Path(task.game_file)
    if not task.game_file or path.parent.parent.parent.name != first.split:
        return f"games={spec['name']}"
    return f"games={spec['name']} in {path.parents[3]}"


def _table(loaded: Mapping[str, "GameSet"]) -> "Table":
    """Task types, then all that are kept, then what was left out, by split."""
    from rich.table import Table

    table = Table("", box=None, pad_edge=False)
    for split in loaded:
        table.add_column(split, justify="right")

    def row(name: str, counts: Sequence[int], style: str = "") -> None:
        table.add_row(name, *(f"{count:,}" for count in counts), style=style)

    types = {split: Counter(task.task_type for task in loaded[split].tasks) for split in loaded}
    for task_type in _known_order(types):
        row(task_type, [types[split][task_type] for split in loaded])
    row("games kept", [len(loaded[split].tasks) for split in loaded], "bold")
    row("task folders of these", [_folders(games) for games in loaded.values()])
    for reason in sorted({reason for games in loaded.values() for reason in games.excluded}):
        row(f"left out: {reason}", [games.excluded.get(reason, 0) for games in loaded.values()])
    return table


def _known_order(types: Mapping[str, Mapping[str, int]]) -> list[str]:
    """ALFWorld's order, then any others."""
    from agentic_rl.types import TASK_TYPES

    found = {task_type for counts in types.values() for task_type in counts}
    return [name for name in TASK_TYPES if name in found] + sorted(found - {*TASK_TYPES})


def _folders(games: "GameSet") -> int:
    return len({task.task_id.split("/")[0] for task in games.tasks})


def _panels(loaded: Mapping[str, "GameSet"]) -> list[str]:
    width = max(map(len, loaded))
    return [f"panel {split:<{width}}  {games.panel_hash}" for split, games in loaded.items()]


def _published(spec: Mapping[str, object], loaded: Mapping[str, "GameSet"]) -> list[str]:
    """How the counts compare with the published ones, where the games are the published games."""
    from agentic_rl.games.alfworld import PUBLISHED

    if spec["name"] != "alfworld":
        return []
    counts = {split: len(loaded[split].tasks) if split in loaded else 0 for split in PUBLISHED}
    pairs = ", ".join(f"{split} {counts[split]:,} of {PUBLISHED[split]:,}" for split in PUBLISHED)
    state = "complete" if counts == dict(PUBLISHED) else "partial"
    return [f"published games: {state} ({pairs})"]


def download(to: str | None, *, force: bool = False) -> int:
    """Runs alfworld-download into `to`; GamesError, one line, where it fails."""
    from agentic_rl.games.alfworld import PUBLISHED, ALFWorldGames, download_folder

    folder = Path(to).expanduser().absolute() if to else download_folder()
    if not force:
        try:
            games = ALFWorldGames(root=str(folder))
            if all(len(games.load(split).tasks) == PUBLISHED[split] for split in PUBLISHED):
                print(f"The published games are in {folder} already; --force fetches them again.")
                return 0
        except GamesError:
            print(f"Downloading the published games into {folder}.", flush=True)
    _run(download_command(folder, force=force), folder)
    print(f"The published games are in {folder}. Type: agentic-rl data stats --root {folder}")
    return 0


def download_command(folder: Path, *, force: bool) -> list[str]:
    """The console script of the alfworld package in this environment."""
    beside = Path(sys.executable).with_name(_SCRIPT)
    script = str(beside) if beside.is_file() else shutil.which(_SCRIPT)
    if script is None:
        raise GamesError(f"{_SCRIPT} is not installed; type: pip install 'alfworld>=0.4.2,<0.5'")
    return [script, "--data-dir", str(folder), *(["-f", "-ff"] if force else [])]


def _run(command: Sequence[str], folder: Path) -> None:
    """Half-loaded files stay in `folder`, so that the same command goes on where it stopped."""
    partial = folder / ".partial"
    try:
        partial.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GamesError(f"cannot write to {folder}: {error.strerror}; type --to PATH") from error
    env = os.environ | {"ALFWORLD_DATA": str(folder), "TMPDIR": str(partial)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            last = _forward(process.stderr)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        reason = textwrap.shorten(last, 160, placeholder=" ...")
        raise GamesError(
            f"{_SCRIPT} failed: {reason or f'exit status {process.returncode}'};"
            " type the command again to go on where it stopped, or use games=builtin"
        )
    shutil.rmtree(partial, ignore_errors=True)


def _forward(stream: IO[bytes]) -> str:
    """Shows progress as it comes, but no traceback; gives the last line."""
    pending, last, quiet = b"", b"", False
    while chunk := os.read(stream.fileno(), 4096):
        *lines, pending = re.split(rb"(?<=[\r\n])", pending + chunk)
        for line in lines:
            quiet = quiet or line.startswith(_TRACEBACK)
            last = line.strip() or last
            if not quiet:
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
    return (pending.strip() or last).decode(errors="replace")
