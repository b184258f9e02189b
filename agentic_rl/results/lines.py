"""Files of JSON lines that survive a kill at any byte: only a whole line counts."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentic_rl.errors import RunFolderError


class DamagedError(RunFolderError, ValueError):
    """A file of a run that holds what no run has written."""


class LineFile:
    """Appends whole lines, each batch in one write; what a failed write left is taken back."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._size = _drop_torn_line(path)
        self._file.truncate(self._size)

    def append(self, lines: Iterable[str]) -> None:
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        try:
            written = 0
            while written < len(text):
                written += self._file.write(memoryview(text)[written:]) or 0
        except BaseException:
            self._file.truncate(self._size)
            raise
        self._size += len(text)

    def close(self) -> None:
        self._file.close()


def to_line(row: Mapping[str, Any]) -> str:
    """One compact JSON line; ValueError on NaN or infinity, which JSON does not have."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def whole_lines(path: Path) -> bytes:
    """The file up to its last line's end."""
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of the whole lines, one by one; DamagedError names a line that is no JSON object."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield _row(path, number, line)


def replace_file(path: Path, write: Callable[[Path], None]) -> None:
    """Fills a temporary file beside `path`, then puts it in its place."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def keep_lines(path: Path, keep: Callable[[Mapping[str, Any]], bool]) -> None:
    """Leaves only the rows asked for, their lines to the byte; a torn last line goes."""
    lines = enumerate(whole_lines(path).split(b"\n")[:-1], start=1)
    try:
        kept = b"".join(line + b"\n" for number, line in lines if keep(_row(path, number, line)))
    except KeyError as error:
        raise DamagedError(f"{path} holds a row without {error}") from error
    replace_file(path, lambda temporary: _write_bytes(temporary, kept))


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DamagedError(f"{path}, line {number}: {error}") from error
    if not isinstance(row, dict):
        raise DamagedError(f"{path}, line {number}: not a JSON object")
    return row


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _drop_torn_line(path: Path) -> int:
    """The size of the whole lines."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return 0
        file.seek(size - 1)
        return size if file.read(1) == b"\n" else len(whole_lines(path))
