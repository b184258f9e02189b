"""Notices, from the rows of past updates, that a policy got much worse or stopped trying."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

WINDOW = 5
"""Updates whose mean is compared."""
_LEAST_SUCCESS = 0.2
_LOST_SHARE = 0.5
_ENTROPY_SHARE = 0.1
_GOOD_SUCCESS = 0.8

Row = Mapping[str, Any]


def warning(rows: Sequence[Row]) -> str | None:
    """A line at the update where success or entropy collapses, and at no other.

    `rows` are the rows of `updates` so far, the latest last. Success has collapsed where its mean
    over five updates is half of its best or less; entropy where it is a tenth of what it began with
    while the policy is not good: then nothing new is tried any more.
    """
    for collapsed in (_success, _entropy):
        line = collapsed(rows)
        if line and not collapsed(rows[:-1]):
            return line
    return None


def _success(rows: Sequence[Row]) -> str | None:
    means = _means(rows, "success")
    if not means or max(means) < _LEAST_SUCCESS or means[-1] > _LOST_SHARE * max(means):
        return None
    return (
        f"success has collapsed: {100 * means[-1]:.1f} % over the last {WINDOW} updates,"
        f" {100 * max(means):.1f} % at its best. Try a lower lr, or an earlier checkpoint"
    )


def _entropy(rows: Sequence[Row]) -> str | None:
    means, success = _means(rows, "entropy"), _means(rows, "success")
    if not means or means[0] <= 0 or means[-1] > _ENTROPY_SHARE * means[0]:
        return None
    if success and success[-1] >= _GOOD_SUCCESS:
        return None
    return (
        f"entropy has collapsed: {means[-1]:.3g} over the last {WINDOW} updates, {means[0]:.3g} at"
        " first. The policy tries nothing new: try a lower lr"
    )


def _means(rows: Sequence[Row], column: str) -> list[float]:
    """Means over each `WINDOW` updates in a row; updates without the value do not count."""
    values = [float(row[column]) for row in rows if row.get(column) is not None]
    return [
        math.fsum(values[end - WINDOW : end]) / WINDOW for end in range(WINDOW, len(values) + 1)
    ]
