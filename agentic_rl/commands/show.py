"""`agentic-rl show RUN`: one trajectory of a run, to be read in the terminal."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HELP = "read a trajectory: agentic-rl show RUN [--list] [--episode TASK[:BRANCH]]"
HYDRA = False

Row = dict[str, Any]
Line = tuple[str, str]
"""A line and the style it has on a terminal."""

_FLAGS = {"malformed": "no action was read", "cut": "cut by its length"}


def main(argv: list[str]) -> int:
    from agentic_rl.results import read_record

    options = _parse(argv)
    folder = _the_run(Path(options.run))
    if folder is None:
        return _list_runs(Path(options.run))
    read_record(folder)
    if options.list:
        return _list(folder, options)
    chosen, count = _choose(folder, options)
    _print([*(raw_lines(chosen) if options.messages else lines(chosen))])
    if count > 1:
        print(f"\nthe last of {count} trajectories that match; --list names them", file=sys.stderr)
    return 0


def _the_run(folder: Path) -> Path | None:
    """The folder, or the one run below it; None where there are several."""
    from agentic_rl.results.reader import runs
    from agentic_rl.results.record import FILE

    if not folder.is_dir() or (folder / FILE).exists():
        return folder
    found = runs(folder)
    if len(found) > 1:
        return None
    return found[0].folder if found else folder


def _list_runs(folder: Path) -> int:
    from agentic_rl.commands._tables import Cells, write_text
    from agentic_rl.results.reader import runs

    found = runs(folder)
    rows = [
        [
            str(run.folder),
            run.record.recipe or "-",
            run.record.command,
            str(run.record.seed),
            run.status,
            run.record.started,
        ]
        for run in found
    ]
    head = ["run", "recipe", "command", "seed", "status", "started"]
    notes = [f"{len(found)} runs; read one: agentic-rl show {found[-1].folder}"]
    write_text(Cells(head, rows, frozenset({"seed"}), notes))
    return 0


def _choose(folder: Path, options: Any) -> tuple[Row, int]:
    """The last trajectory that matches, and how many do; a game's whole name goes before a part."""
    from agentic_rl.errors import RunFolderError
    from agentic_rl.results.trajectories import read_trajectories

    task, branch = _episode(options.episode)
    known: set[str] = set()
    found: dict[bool, tuple[Row, int]] = {}
    for row in read_trajectories(folder):
        known.add(row["task_id"])
        if not _wanted(row, options) or branch not in (None, row["branch"]):
            continue
        exact = task == row["task_id"]
        if exact or task is None or task in row["task_id"]:
            _, count = found.get(exact, (row, 0))
            found[exact] = (row, count + 1)
    if not found:
        raise RunFolderError(_nothing(folder, task, known))
    return found.get(True) or found[False]


def lines(row: Row) -> Iterator[Line]:
    """The trajectory as it was played: what was said, what was done, what came of it."""
    yield from _header(row)
    for message in _opening(row["messages"]):
        yield "", ""
        yield from _message(message)
    steps = row["steps"]
    after = [step["observation"] for step in steps[1:]] + [row.get("final_observation") or ""]
    for step, observation in zip(steps, after, strict=False):
        yield "", ""
        yield from _step(step, observation)
    if row.get("error"):
        yield "", ""
        yield f"failed: {_plain(row['error'])}", "bold red"


def raw_lines(row: Row) -> Iterator[Line]:
    """The messages to the letter, control characters apart."""
    yield from _header(row)
    for message in row["messages"]:
        yield "", ""
        yield from _message(message)


def _header(row: Row) -> Iterator[Line]:
    when = f"{row['phase']}, update {row['update']}, branch {row['branch']}"
    invalid = sum(step["malformed"] or _refused(step) for step in row["steps"])
    end = "won" if row.get("won") else str(row.get("stop_reason"))
    parts = [f"{end} after {len(row['steps'])} steps", f"{invalid} invalid actions"]
    if row.get("return") is not None:
        parts.insert(1, f"return {row['return']:.3f}")
    yield f"{row['task_id']}  ({row.get('task_type')}, {row['split']})", "bold"
    yield when, ""
    yield ", ".join(parts), "green" if row.get("won") else "yellow"


def _opening(messages: Sequence[Row]) -> Iterator[Row]:
    for message in messages:
        if message["role"] == "assistant":
            return
        yield message


def _message(message: Row) -> Iterator[Line]:
    yield f"[{message['role']}]", "bold cyan"
    for text in _plain(message["content"]).splitlines():
        yield f"  {text}", ""


def _step(step: Row, observation: str) -> Iterator[Line]:
    yield f"step {step['step'] + 1}", "bold"
    for text in _plain(step["reply"]).splitlines():
        yield f"  {text}", "dim"
    problems = _problems(step)
    action = "(none)" if step["action"] is None else _plain(step["action"])
    said = f"  [{', '.join(problems)}]" if problems else ""
    yield f"> {action}{said}", "red" if problems else "green"
    worth = [
        f"{name} {step[name]:+.3f}"
        for name in ("reward", "penalty", "advantage")
        if step.get(name) not in (None, 0)
    ]
    if worth:
        yield f"  {'  '.join(worth)}", "magenta"
    for text in _plain(observation).splitlines():
        yield f"  {text}", ""


def _problems(step: Row) -> list[str]:
    found = [words for name, words in _FLAGS.items() if step[name]]
    return [*found, "not admissible"] if _refused(step) else found


def _refused(step: Row) -> bool:
    return step["action"] is not None and not step["admissible"]


def _plain(text: str) -> str:
    """Without control characters: what a model wrote must not steer a terminal."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else "�" for sign in text)


def _print(content: Sequence[Line]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for text, style in content:
        console.print(Text(text, style))


def _list(folder: Path, options: Any) -> int:
    from agentic_rl.commands._tables import Cells, write_text
    from agentic_rl.results.trajectories import read_trajectories

    head = ["phase", "update", "split", "episode", "result", "return", "steps"]
    rows = [
        [
            row["phase"],
            str(row["update"]),
            row["split"],
            f"{_plain(row['task_id'])}:{row['branch']}",
            "won" if row.get("won") else str(row.get("stop_reason")),
            "-" if row.get("return") is None else f"{row['return']:.3f}",
            str(len(row["steps"])),
        ]
        for row in read_trajectories(folder)
        if _wanted(row, options)
    ]
    notes = [f"{len(rows)} trajectories; read one: agentic-rl show {folder} --episode TASK:BRANCH"]
    write_text(Cells(head, rows, frozenset({"update", "return", "steps"}), notes))
    return 0


def _wanted(row: Row, options: Any) -> bool:
    return (options.update is None or row["update"] == options.update) and (
        options.phase is None or row["phase"] == options.phase
    )


def _episode(words: str | None) -> tuple[str | None, int | None]:
    task, colon, branch = (words or "").rpartition(":")
    if colon and branch.isdecimal():
        return task or None, int(branch)
    return words, None


def _nothing(folder: Path, task: str | None, known: set[str]) -> str:
    from agentic_rl.errors import did_you_mean

    if not known:
        return f"{folder} kept no trajectories: a run keeps them with save.trajectories=all"
    if task is not None and not any(task in name for name in known):
        return f"{folder} kept no game '{task}'.{did_you_mean(task, known)} --list names those kept"
    return f"{folder} kept no such trajectory: `agentic-rl show {folder} --list` names those kept"


def _parse(argv: list[str]) -> Any:
    from agentic_rl.commands._arguments import Arguments

    parser = Arguments("show", "One trajectory of a run; the last one kept unless told otherwise.")
    parser.add_argument("run", metavar="RUN", help="a run folder; of a folder of runs, the runs")
    parser.add_argument("--episode", metavar="TASK[:BRANCH]", help="a game's id, or a part of it")
    parser.add_argument("--update", type=int, metavar="N", help="after N updates")
    parser.add_argument("--phase", choices=("train", "evaluation"), help="of training or not")
    parser.add_argument("--list", action="store_true", help="name the trajectories kept")
    parser.add_argument("--messages", action="store_true", help="the messages to the letter")
    return parser.parse_args(argv)
