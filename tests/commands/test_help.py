"""`--help` of the commands that read runs: every argument says what it is for."""

import re
from itertools import pairwise

import pytest

from agentic_rl.cli import dispatch


@pytest.mark.parametrize("command", ["compare", "plot", "show", "explain", "list"])
def test_every_argument_has_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        dispatch([command, "--help"])
    lines = [*capsys.readouterr().out.splitlines(), ""]
    arguments = [(line, below) for line, below in pairwise(lines) if re.match(r"  \S", line)]
    assert len(arguments) > 1
    for line, below in arguments:
        said = re.match(r"  \S.*?\s{2,}\S", line) or re.match(r"\s{10,}\S", below)
        assert said, f"{command}: {line.strip()} has no help"
