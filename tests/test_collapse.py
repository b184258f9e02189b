"""A collapse is told once, when it happens."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentic_rl.collapse import WINDOW, warning


def _rows(
    success: Sequence[float | None], entropy: Sequence[float | None]
) -> list[dict[str, object]]:
    return [{"success": s, "entropy": e} for s, e in zip(success, entropy, strict=True)]


def _told(rows: list[dict[str, object]]) -> list[tuple[int, str]]:
    """(update, line) over a run."""
    lines = [(end, warning(rows[:end])) for end in range(len(rows) + 1)]
    return [(end, line) for end, line in lines if line]


def test_success_that_falls_to_half_of_its_best_is_told_once() -> None:
    rows = _rows([0.6] * 10 + [0.0] * 10, [1.0] * 20)
    ((update, line),) = _told(rows)
    # The mean of five is 0.24 when three of them are zeros.
    assert update == 13 and "success has collapsed: 24.0 %" in line and "60.0 % at its best" in line


def test_a_second_collapse_is_told_again() -> None:
    rows = _rows(([0.6] * 8 + [0.0] * 6) * 2, [1.0] * 28)
    assert len(_told(rows)) == 2


def test_entropy_that_falls_while_the_policy_is_poor_is_told_once() -> None:
    rows = _rows([0.3] * 20, [2.0] * 5 + [0.01] * 15)
    ((update, line),) = _told(rows)
    assert update == 10 and "entropy has collapsed" in line


def test_entropy_that_falls_because_the_policy_is_good_is_no_collapse() -> None:
    assert not _told(_rows([0.95] * 20, [2.0] * 5 + [0.01] * 15))


def test_a_policy_that_never_succeeded_has_nothing_to_lose() -> None:
    assert not _told(_rows([0.15] * 5 + [0.0] * 20, [1.0] * 25))


def test_updates_without_values_do_not_count() -> None:
    assert not _told(_rows([None] * 20, [None] * 20))


@given(st.lists(st.floats(0, 1), max_size=25), st.floats(0.1, 5))
def test_nothing_is_said_before_there_is_something_to_compare(
    success: list[float], entropy: float
) -> None:
    rows = _rows(success, [entropy] * len(success))
    assert all(update > WINDOW for update, _ in _told(rows))


@given(st.floats(0, 1), st.floats(0, 5), st.integers(0, 30))
def test_a_steady_run_is_quiet(success: float, entropy: float, length: int) -> None:
    assert not _told(_rows([success] * length, [entropy] * length))
