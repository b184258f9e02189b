import os
from pathlib import Path

import pytest

from agentic_rl.cache import cache_folder, write_atomic


def test_the_cache_lies_where_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("AGENTIC_RL_CACHE", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "agentic-rl"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "agentic-rl"
    monkeypatch.setenv("AGENTIC_RL_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomic(path, b"one")
    with open(path, "rb") as reader:
        write_atomic(path, b"two")
        assert reader.read() == b"one"
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["file"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError):
        write_atomic(tmp_path / "file", b"one")
    assert os.listdir(tmp_path) == ["file"]
