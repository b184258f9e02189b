"""The rows of `checkpoints.jsonl`; addresses inside the run folder are kept relative to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rl.results.lines import DamagedError, read_lines
from agentic_rl.training import Checkpoint

FILE = "checkpoints.jsonl"


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A complete checkpoint, the update it was saved after, and the metrics at that moment."""

    update: int
    checkpoint: Checkpoint
    metrics: Mapping[str, Any]


def checkpoint_row(folder: Path, checkpoint: Checkpoint, update: int) -> dict[str, Any]:
    return {
        "update": update,
        "name": checkpoint.name,
        "state": _relative(folder, checkpoint.state),
        "sampler": _relative(folder, checkpoint.sampler),
    }


def read_checkpoints(folder: Path) -> list[SavedCheckpoint]:
    """In the order saved, addresses as they are found from here; none is an empty list."""
    path = folder / FILE
    if not path.is_file():
        return []
    try:
        return [_saved(folder, row) for row in read_lines(path)]
    except KeyError as error:
        raise DamagedError(f"{path} holds a row without {error}") from error


def _saved(folder: Path, row: Mapping[str, Any]) -> SavedCheckpoint:
    return SavedCheckpoint(
        row["update"],
        Checkpoint(row["name"], _found(folder, row["state"]), _found(folder, row["sampler"])),
        row.get("metrics") or {},
    )


def _relative(folder: Path, address: str) -> str:
    """`checkpoints/update-20` for a path inside the folder: a run folder may be moved."""
    if not address or "://" in address:
        return address
    path, home = Path(address).absolute(), folder.absolute()
    return path.relative_to(home).as_posix() if path.is_relative_to(home) else address


def _found(folder: Path, address: str) -> str:
    if not address or "://" in address or not (folder / address).exists():
        return address
    return str(folder / address)
