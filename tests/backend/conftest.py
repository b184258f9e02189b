"""A loopback service and a user who has a key but no profile."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loopback import tokenizer
from tests.loopback.server import Loopback
from tests.loopback.state import KEY


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer.build(tmp_path_factory.mktemp("loopback") / "tokenizer")


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and a key in the environment."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("PYTRIO_", "TINKER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PYTRIO_API_KEY", KEY)
    return home


@pytest.fixture
def service(tokenizer_folder: Path, user_home: Path) -> Iterator[Loopback]:
    with Loopback(tokenizer_folder) as running:
        yield running
