"""Holds the compiled engine to TextWorld over any folder of games.

    python benchmarks/engine_exactness.py compare FOLDER     every game beside TextWorld
    python benchmarks/engine_exactness.py walkthroughs FOLDER    the engine alone, and progress
    python benchmarks/engine_exactness.py plans FOLDER       remaining plans against a full search

Games are those that the published filter keeps. The exit status is not 0 where anything differs.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from agentic_rl.env.alfworld import AlfworldEnv, load_game, open_world
from agentic_rl.env.engine import Game, World
from agentic_rl.env.progress import ProgressMeter, shortest_by_search
from agentic_rl.env.reference.compare import (
    Comparison,
    compare_commands,
    compare_game,
    walkthrough_of,
)
from agentic_rl.types import Task


def main() -> int:
    options = _options()
    tasks = _tasks(options)
    print(f"{len(tasks)} games: {dict(sorted(Counter(t.task_type for t in tasks).items()))}")
    start = time.perf_counter()
    if options.what == "compare":
        counts = asyncio.run(_compare(options, tasks))
    elif options.what == "walkthroughs":
        counts = _walkthroughs(tasks)
    else:
        counts = _plans(tasks, options)
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if any(count for name, count in counts.items() if name.isupper()) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["compare", "walkthroughs", "plans"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--per-type", type=int, help="at most so many games of each task type")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--plain", action="store_true", help="TextWorld without our patches")
    parser.add_argument(
        "--cases", type=Path, nargs="*", default=[], help="JSON of [game, commands]"
    )
    parser.add_argument("--states", type=int, default=3, help="for plans: states of each game")
    parser.add_argument("--most", type=int, default=40_000, help="for plans: states of a search")
    return parser.parse_args()


def _tasks(options: argparse.Namespace) -> list[Task]:
    """The kept games in a seeded order, so that any prefix is a fair sample."""
    files = sorted(options.folder.rglob("game.tw-pddl"))
    random.Random(options.seed).shuffle(files)
    per_type: Counter[str] = Counter()
    tasks: list[Task] = []
    for file in files:
        kind = file.parent.parent.name.split("-")[0]
        if options.per_type is not None and per_type[kind] >= options.per_type:
            continue
        if "movable" in str(file) or "Sliced" in str(file):
            continue
        if json.loads(file.read_bytes()).get("solvable"):
            per_type[kind] += 1
            tasks.append(Task(file.parent.name, "", kind, str(file), ""))
    return tasks


async def _compare(options: argparse.Namespace, tasks: list[Task]) -> Counter[str]:
    ours = AlfworldEnv()
    theirs = AlfworldEnv(engine="textworld", workers=options.workers, plain=options.plain)
    counts: Counter[str] = Counter()
    waiting = list(reversed([*_cases(options, counts), *((task, None) for task in tasks)]))

    async def player() -> None:
        while waiting:
            task, commands = waiting.pop()
            if commands is None:
                found = await compare_game(ours, theirs, task, options.seed)
                counts["NOT WON BY THE WALKTHROUGH"] += not found.won
            else:
                found = await compare_commands(ours, theirs, task, commands)
            _count(counts, found)

    try:
        await asyncio.gather(*(player() for _ in range(options.workers)))
    finally:
        await theirs.close()
    counts["FALLBACKS"] += ours.fallbacks
    return counts


def _cases(
    options: argparse.Namespace, counts: Counter[str]
) -> list[tuple[Task, list[str] | None]]:
    """Given sequences; their games are named from the parent of the data's folder."""
    found: list[tuple[Task, list[str] | None]] = []
    for path in options.cases:
        for name, commands in json.loads(path.read_bytes()):
            file = next((p / name for p in options.folder.parents if (p / name).is_file()), None)
            counts["cases without a game here"] += file is None
            if file is not None:
                found.append((Task(file.parent.name, "", "case", str(file), ""), commands))
    return found


def _count(counts: Counter[str], found: Comparison) -> None:
    counts["games compared"] += 1
    counts["results compared"] += found.steps
    counts["MISMATCHES"] += len(found.mismatches)
    for mismatch in found.mismatches[:2]:
        print(mismatch[:1500], flush=True)
    if counts["games compared"] % 20 == 0:
        print(f"... {counts['games compared']} games", flush=True)


def _walkthroughs(tasks: list[Task]) -> Counter[str]:
    """Every command admissible, won at the end and not before, never planned longer than that."""
    counts: Counter[str] = Counter()
    seconds: list[float] = []
    for task in tasks:
        world = open_world(load_game(task.game_file))
        meter, move = ProgressMeter(world.game), world.start
        walkthrough = walkthrough_of(task)
        remaining = meter(move.node.state).remaining
        counts["NO PLAN, OR LONGER THAN THE WALKTHROUGH"] += remaining is None or remaining > len(
            walkthrough
        )
        counts["plans shorter than the walkthrough"] += remaining != len(walkthrough)
        counts["WON AT THE START"] += move.result.won
        for number, command in enumerate(walkthrough, 1):
            counts["INADMISSIBLE"] += command not in move.node.commands
            move = world.step(move.node, command)
            start = time.process_time()
            meter(move.node.state)
            seconds.append(time.process_time() - start)
            counts["WON TOO EARLY OR NOT AT ALL"] += move.result.won != (number == len(walkthrough))
        counts["games"] += 1
        counts["commands"] += len(walkthrough)
    if seconds:
        median = sorted(seconds)[len(seconds) // 2]
        mean = sum(seconds) / len(seconds)
        print(
            f"progress of a new state: {1e6 * mean:.0f} us mean, {1e6 * median:.0f} us median, CPU"
        )
    return counts


def _plans(tasks: list[Task], options: argparse.Namespace) -> Counter[str]:
    counts: Counter[str] = Counter()
    for task in tasks:
        world = open_world(load_game(task.game_file))
        meter = ProgressMeter(world.game)
        rng = random.Random(f"{options.seed} {task.task_id}")
        for _ in range(options.states):
            state = _wandered(world, walkthrough_of(task), rng)
            remaining = meter(state).remaining
            if remaining is None or remaining > 6:
                counts["further than 6" if remaining else "no plan known"] += 1
                continue
            _compare_plan(counts, world.game, state, remaining, options.most)
    return counts


def _compare_plan(
    counts: Counter[str], game: Game, state: tuple[object, ...], remaining: int, most: int
) -> None:
    """A search that ends early has still shown that no plan of the depths it has seen exists."""
    start = time.perf_counter()
    found = shortest_by_search(game, state, remaining, most)
    counts["milliseconds of search"] += round(1e3 * (time.perf_counter() - start))
    if found is None:
        counts["searches given up"] += 1
        return
    counts["plans compared"] += 1
    counts[f"of length {found}"] += 1
    if found != remaining:
        counts["OTHER LENGTHS"] += 1
        print(f"{game.digest[:12]}: {remaining} != {found} in {game.facts(state, 'holds')}")


def _wandered(world: World, walkthrough: tuple[str, ...], rng: random.Random) -> tuple[object, ...]:
    """A state a few steps off the walkthrough, before it is won."""
    node = world.start.node
    for command in walkthrough[: rng.randrange(len(walkthrough))]:
        node = world.step(node, command).node
    for _ in range(rng.randrange(6)):
        verbs: dict[str, list[str]] = defaultdict(list)
        for command in node.commands:
            verbs[command.split()[0]].append(command)
        after = world.step(node, rng.choice(verbs[rng.choice(sorted(verbs))])).node
        node = node if after.won else after
    return node.state


if __name__ == "__main__":
    sys.exit(main())
