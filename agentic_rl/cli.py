"""`agentic-rl [command] [words] [key=value ...]`: the first word finds the command."""

import io
import os
import shlex
import sys
from collections.abc import Sequence

from agentic_rl import __version__, commands
from agentic_rl.errors import AgenticRLError, UsageError, did_you_mean

DEFAULT = "train"
_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
_VALUED = frozenset(
    {"--cfg", "-c", "--package", "-p", "--config-name", "-cn", "--config-dir", "-cd"}
)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale may lack a table's lines
            stream.reconfigure(errors="replace")
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
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


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
    if not argv or argv in (["-h"], ["--help"], ["help"]):
        print(usage())
        return 0
    if argv and argv[0] in ("-V", "--version"):
        print(f"agentic-rl {__version__}")
        return 0
    command, rest = _completed(argv) if _completes(argv) else _command(argv)
    if command is None:
        return 0  # the shell completes files
    module = commands.load(command)
    if not module.HYDRA:
        return int(module.main(rest) or 0)
    from agentic_rl import launch

    return launch.run(command, rest)


def _command(argv: list[str]) -> tuple[str, list[str]]:
    """The first word that is no flag, no flag's value and no key=value, and the rest."""
    known, at = commands.names(), 0
    while at < len(argv) and argv[at].startswith("-"):
        value = argv[at + 1] if at + 1 < len(argv) else ""
        at += 2 if argv[at] in _VALUED or value in _INFO else 1
    if at >= len(argv) or "=" in argv[at] or argv[at].startswith("~"):
        return DEFAULT, argv
    word = argv[at]
    if word not in known:
        from agentic_rl.searchpath import recipe_names

        if word in recipe_names():
            line = shlex.join([*argv[:at], f"+recipe={word}", *argv[at + 1 :]])
            raise UsageError(f"'{word}' is a recipe, not a command: type `agentic-rl {line}`")
        raise UsageError(
            f"unknown command '{word}'.{did_you_mean(word, known)} Known: {', '.join(known)}."
            " A recipe is run with +recipe=NAME."
        )
    return word, argv[:at] + argv[at + 1 :]


def _completes(argv: list[str]) -> bool:
    """Bash asks `agentic-rl -sc query=bash`, with the line so far in COMP_LINE."""
    flags = {"-sc", "--shell-completion"}
    asks = any(word.startswith("query=") for word in argv)
    return asks and bool(flags & set(argv)) and "COMP_LINE" in os.environ


def _completed(argv: list[str]) -> tuple[str | None, list[str]]:
    """The command on the line that is completed, which is then hidden from Hydra.

    Names of commands are completed here; None, where the shell's own completion is enough.
    """
    program, *words = os.environ["COMP_LINE"].split(" ")
    known = commands.names()
    typed = [word for word in words if not word.startswith("-")]
    if len(words) == 1 and "=" not in words[0]:
        print(" ".join(name for name in known if name.startswith(words[0])))
    if not typed or typed[0] not in known or words[-1] is typed[0]:
        return DEFAULT, argv
    words.remove(typed[0])
    os.environ["COMP_LINE"] = " ".join([program, *words])
    return (typed[0] if commands.load(typed[0]).HYDRA else None), argv


def _say(error: AgenticRLError, status: int) -> int:
    print(" ".join(str(error).split()), file=sys.stderr)
    return status
