"""Hashes that are the same on every machine, Python and day."""

import hashlib
from collections.abc import Iterable


def panel_hash(games: Iterable[tuple[str, str]]) -> str:
    """Names what is evaluated: over the sorted (task id, file digest) pairs."""
    lines = sorted(f"{task_id} {digest}" for task_id, digest in games)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def stable_hash(*parts: object) -> int:
    """31 bits of sha256 over the parts."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") & 0x7FFFFFFF
