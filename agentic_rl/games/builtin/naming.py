"""Ids as the problem text spells them, and the names that the game calls them by."""

from collections.abc import Iterable

_SPELT = {"-": "_minus_", "|": "_bar_", "+": "_plus_", ".": "_dot_", ",": "_comma_"}


def object_id(kind: str, x: float, y: float, z: float) -> str:
    return f"{kind}|{_number(x)}|{_number(y)}|{_number(z)}"


def mangle(text: str) -> str:
    for sign, name in _SPELT.items():
        text = text.replace(sign, name)
    return text


def names_of(ids: Iterable[str]) -> dict[str, str]:
    """`cabinet 3` by id: ALFWorld sorts the lower-cased ids and numbers each kind downwards."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for low, plain in sorted((mangle(plain).lower(), plain) for plain in ids):
        kind = low.split("_bar_", 1)[0] + ("basin" if "basin" in low else "")
        kinds.setdefault(kind, []).append((low, plain))
    return {
        plain: f"{kind} {len(members) - position}"
        for kind, members in kinds.items()
        for position, (_, plain) in enumerate(members)
    }


def _number(value: float) -> str:
    text = f"{value:+06.2f}"
    return "00.00" if float(text) == 0 else text
