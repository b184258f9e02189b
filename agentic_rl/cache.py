"""The one folder outside a run that is written to, and how to write there safely."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """$AGENTIC_RL_CACHE, or `agentic-rl` in the user's cache folder. It need not exist yet."""
    named = os.environ.get("AGENTIC_RL_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "agentic-rl")


def write_atomic(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one, whole; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it, however it ends."""
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
