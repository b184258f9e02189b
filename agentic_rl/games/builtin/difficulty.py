"""How hard a generated game is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difficulty:
    """Only `normal` resembles the published games; only `max_receptacles` changes the rooms."""

    name: str
    max_receptacles: int | None = None
    """The room is trimmed to this many places to search."""
    kinds: float = 1.0
    """Share of the room's other kinds of objects that are present."""
    max_copies: int = 3
    """Of each other object."""
    copies: tuple[int, int] = (1, 4)
    """Fewest and most of the object asked for; two at least where two are wanted."""
    hidden: float | None = None
    """Chance that every copy asked for lies in something closed; None leaves it to the placing."""
    closed_place: float | None = None
    """Chance that the place asked for must be opened; None leaves it to the choice of the game."""
    far: bool = False
    """The object asked for never lies in the kind of place that is searched first."""


DIFFICULTIES = {
    difficulty.name: difficulty
    for difficulty in (
        Difficulty("tiny", 4, 0.15, 1, (3, 4), 0.0, 0.0),
        Difficulty("easy", 8, 0.4, 1, (2, 4), 0.0, 0.0),
        Difficulty("normal"),
        Difficulty("hard", None, 1.0, 3, (1, 1), 0.7, 0.6, True),
    )
}
