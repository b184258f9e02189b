"""argparse for the commands that Hydra does not read: a slip is one line."""

import argparse
from typing import NoReturn

from agentic_rl.errors import UsageError


class Arguments(argparse.ArgumentParser):
    """The parser of `agentic-rl NAME`; what it cannot read raises UsageError."""

    def __init__(self, name: str, description: str) -> None:
        super().__init__(prog=f"agentic-rl {name}", description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}. See `{self.prog} --help`.")
