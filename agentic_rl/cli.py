"""`agentic-rl [command] [words] [key=value ...]`: the first word finds the command."""

import sys
from collections.abc import Sequence

from agentic_rl import __version__, commands
from agentic_rl.errors import AgenticRLError, UsageError, did_you_mean

DEFAULT = "train"


def main() -> None:
    """The console script."""
    sys.exit(dispatch(sys.argv[1:]))


def dispatch(argv: Sequence[str]) -> int:
    """Runs one command line and gives its exit status: 0, 1 for an error, 2 for a misuse."""
    try:
        return _dispatch(list(argv))
    except UsageError as error:
        return _say(error, 2)
    except AgenticRLError as error:
        return _say(error, 1)
    except KeyboardInterrupt:
        return 130


def usage() -> str:
    """What `agentic-rl --help` prints."""
    lines = [f"  {name:<10} {commands.load(name).HELP}" for name in commands.names()]
    return "\n".join(
        [
            "usage: agentic-rl [command] [key=value ...]",
            "",
            *lines,
            "",
            "`agentic-rl COMMAND --help` shows a command's options, `--cfg job` its configuration.",
            'Completion for bash: eval "$(agentic-rl -sc install=bash)"',
        ]
    )


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv and argv[0] in ("-V", "--version"):
        print(f"agentic-rl {__version__}")
        return 0
    command, rest = _command(argv)
    module = commands.load(command)
    if not module.HYDRA:
        return int(module.main(rest) or 0)
    from agentic_rl import launch

    return launch.run(command, rest)


def _command(argv: list[str]) -> tuple[str, list[str]]:
    known = commands.names()
    if not argv or "=" in argv[0] or argv[0].startswith(("-", "~")):
        return DEFAULT, argv
    if argv[0] in known:
        return argv[0], argv[1:]
    raise UsageError(
        f"unknown command '{argv[0]}'.{did_you_mean(argv[0], known)} Known: {', '.join(known)}."
    )


def _say(error: AgenticRLError, status: int) -> int:
    print(" ".join(str(error).split()), file=sys.stderr)
    return status
