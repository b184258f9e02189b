"""A row made fit for its table: every column, in order, of its kind, or a named refusal."""

import math
import operator
from collections.abc import Mapping
from typing import Any

from agentic_rl.errors import did_you_mean
from agentic_rl.results.schemas import Column, Table, Value

_EXACT = {"text": str, "int": int, "bool": bool, "float": None}
"""Types that need no second look; a float may be NaN."""


def complete_row(table: Table, row: Mapping[str, Any]) -> dict[str, Value]:
    """All columns in the table's order; ValueError for an unknown, missing or mistyped one."""
    if not table.known >= row.keys():
        name = next(name for name in row if name not in table.known)
        near = did_you_mean(str(name), table.names)
        raise ValueError(f"table {table.name} has no column '{name}'.{near}")
    full: dict[str, Value] = {}
    for column in table.columns:
        value = row.get(column.name)
        # Most values are what they should be; a run writes hundreds of thousands of rows.
        if type(value) is _EXACT[column.kind] or (value is None and column.optional):
            full[column.name] = value
        else:
            full[column.name] = _value(table, column, value)
    return full


def finite(value: Any) -> Any:
    """The same JSON value with null for every NaN and infinity."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def _value(table: Table, column: Column, value: Any) -> Value:
    try:
        fitted = _fit(column, value)
    except TypeError as error:
        wrong = f"{value!r} is no {column.kind}"
        raise ValueError(f"{table.name}.{column.name}: {wrong}") from error
    if fitted is None and not column.optional:
        raise ValueError(f"{table.name}.{column.name} needs a value, not {value!r}")
    return fitted


def _fit(column: Column, value: Any) -> Value:
    if value is None:
        return None
    if column.kind == "text":
        return _text(value)
    if column.kind == "bool":
        return _bool(value)
    if isinstance(value, bool | str | bytes):
        raise TypeError
    if column.kind == "int":
        return operator.index(value)
    number = float(value)
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _bool(value: Any) -> bool:
    # numpy's own bool is neither a bool nor an index.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
        raise TypeError
    return bool(value)
