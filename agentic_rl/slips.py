"""Hydra's and OmegaConf's messages in one line each: what, where, a near match, what to type."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """What was typed."""

    command: str
    primary: str
    overrides: tuple[str, ...]


def word(error: BaseException, line: Line) -> str:
    """One line for an error of composing; an unknown error keeps its own first line."""
    text = str(error).strip() or str(error.__cause__ or "")
    return next(iter(text.splitlines()), type(error).__name__)
