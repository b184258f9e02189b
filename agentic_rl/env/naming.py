"""ALFWorld's display names: `desk_bar_...` is called `desk 1`."""

from collections import Counter
from collections.abc import Iterable

from agentic_rl.env.engine.errors import UnsupportedGame

_SIGNS = (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))


def alfworld_names(ids: Iterable[str]) -> dict[str, str]:
    """As AlfredDemangler without shuffling: of n instances the k-th in order gets number n+1-k."""
    ordered = sorted(ids)
    bases = {name: _base(name) for name in ordered}
    left = Counter(base for base in bases.values() if base is not None)
    names: dict[str, str] = {}
    for name, base in bases.items():
        if base is None:
            names[name] = _spelled(name) + " "  # an id that is no instance keeps its name
        else:
            names[name] = f"{base} {left[base]}"
            left[base] -= 1
    return names


def _base(name: str) -> str | None:
    base, bar, _ = name.partition("_bar_")
    if not bar:
        return None
    if base != _spelled(base):
        raise UnsupportedGame(f"an object called {base[:40]}, which ALFWorld cannot name")
    return base + ("basin" if "basin" in name else "")


def _spelled(name: str) -> str:
    for sign, character in _SIGNS:
        name = name.replace(sign, character)
    return name
