"""Fixtures shared by the whole suite."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no failure.
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")


@pytest.fixture(scope="session")
def alfworld_data() -> Path:
    """The folder that holds `json_2.1.1`; the test is skipped where it is absent."""
    root = os.environ.get("ALFWORLD_DATA", "")
    if not root or not Path(root, "json_2.1.1").is_dir():
        pytest.skip("needs the real ALFWorld games: set ALFWORLD_DATA to the folder of json_2.1.1")
    return Path(root)
