"""The toy games."""

import pytest

from agentic_rl.errors import GamesError
from agentic_rl.games.toy import Toy


def test_splits_share_no_game_and_are_sorted() -> None:
    seen: set[str] = set()
    for split in Toy().splits:
        ids = [task.task_id for task in Toy().load(split).tasks]
        assert ids == sorted(ids)
        assert not seen & set(ids)
        seen |= set(ids)
    assert len(seen) == 64


def test_an_unknown_split_names_the_nearest() -> None:
    with pytest.raises(GamesError, match="Did you mean 'valid_seen'"):
        Toy().load("valid_sen")


def test_an_empty_split_is_an_error() -> None:
    with pytest.raises(GamesError, match=r"games\.train"):
        Toy(train=0).load("train")
