"""The compiled engine and TextWorld side by side, on the same games and the same commands.

    python benchmarks/engine_vs_textworld.py FOLDER [--games 12] [--steps 25] [--patched]

CPU seconds of one process, so that a busy machine does not distort the ratios. TextWorld is as
published (with `--patched`: as `env.engine=textworld` runs it). The first compilation of a shape of
games is reported apart from loading a game.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("ALFWORLD_DATA", str(Path.home() / ".cache/agentic-rl/alfworld-import"))

from agentic_rl.env.alfworld import AlfworldEnv, load_game, open_world
from agentic_rl.env.engine import game as game_module
from agentic_rl.env.reference.patches import install
from agentic_rl.env.reference.worker import Player
from agentic_rl.types import Task

Commands = list[str]


def main() -> None:
    options = _options()
    files = _files(options.folder, options.games)
    install(plain=not options.patched)
    print(f"Python {sys.version.split()[0]}, {len(files)} games, {options.steps} steps each")
    first = _first_compilations(files)
    loads, steps = [], []
    theirs = [_textworld(file, options.steps) for file in files]
    played = [commands for _, _, commands in theirs]
    for file, commands in zip(files, played, strict=True):
        load, step = _compiled(file, commands)
        loads.append(load)
        steps += step
    _row("first compilation of a shape", first)
    their_loads = [load for load, _, _ in theirs]
    their_steps = [step for _, steps_, _ in theirs for step in steps_]
    _row("TextWorld: load + reset", their_loads)
    _row("engine: load + reset", loads)
    _ratio("load + reset", their_loads, loads)
    _row("TextWorld: step", their_steps)
    _row("engine: step", steps)
    _ratio("step", their_steps, steps)
    asyncio.run(_batch(files))
    _memory(files)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--games", type=int, default=12)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--patched", action="store_true")
    return parser.parse_args()


def _files(folder: Path, games: int) -> list[Path]:
    """Solvable games, all types in turn."""
    files = sorted(folder.rglob("game.tw-pddl"))
    random.Random(0).shuffle(files)
    kinds: dict[str, list[Path]] = {}
    for file in files:
        kinds.setdefault(file.parent.parent.name.split("-")[0], []).append(file)
    turns = [file for n in range(len(files)) for kept in kinds.values() for file in kept[n : n + 1]]
    found: list[Path] = []
    for file in turns:
        if len(found) < games and json.loads(file.read_bytes()).get("solvable"):
            found.append(file)
    return found


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def _first_compilations(files: list[Path]) -> list[float]:
    """Seconds to load the first game of each shape; leaves every shape compiled."""
    seconds: list[float] = []
    for file in files:
        known = len(game_module._shapes)
        spent, _ = _timed(partial(load_game, file))
        if len(game_module._shapes) > known:
            seconds.append(spent)
    return seconds


def _textworld(file: Path, steps: int) -> tuple[float, list[float], Commands]:
    """Seconds to load and reset, seconds of each step, and the commands taken."""
    rng = random.Random(1)
    data = json.loads(file.read_bytes())
    player = Player()
    spent, reply = _timed(lambda: player.answer({"do": "open", "game": data}))
    seconds: list[float] = []
    commands: Commands = []
    for _ in range(steps):
        verb = rng.choice(sorted({command.split()[0] for command in reply["actions"]}))
        commands.append(rng.choice([c for c in reply["actions"] if c.split()[0] == verb]))
        request = {"do": "step", "action": commands[-1]}
        step, reply = _timed(partial(player.answer, request))
        seconds.append(step)
        if reply["won"]:
            break
    return spent, seconds, commands


def _compiled(file: Path, commands: Commands) -> tuple[float, list[float]]:
    """The median of five loads; every step as in a first visit, command list and facts included."""
    loads: list[float] = []
    steps: list[float] = []
    for _ in range(5):
        spent, world = _timed(lambda: open_world(load_game(file)))
        loads.append(spent)
        node = world.start.node
        start = time.process_time()
        for command in commands:
            node = world.step(node, command).node
        steps.append((time.process_time() - start) / len(commands))
    return statistics.median(loads), [statistics.median(steps)] * len(commands)


async def _batch(files: list[Path], branches: int = 8, steps: int = 50) -> None:
    """One update's worth of play through the environment, as the runner would do it."""
    tasks = [Task(str(n), "", "", str(file), "") for n, file in enumerate(files[:8])]
    seconds: list[float] = []
    for seed in range(5):
        pool, rng = AlfworldEnv(), random.Random(seed)
        start = time.process_time()
        for task in tasks:
            first = await pool.open(task)
            for _ in range(branches):
                env = await first.branch()
                for _ in range(steps):
                    await env.step(rng.choice(env.last.admissible_actions))
        seconds.append(time.process_time() - start)
    print(
        f"one batch of {len(tasks)} x {branches} x {steps} steps, loading included:"
        f" {statistics.median(seconds):.3f} s (best {min(seconds):.3f} s)"
    )


def _memory(files: list[Path]) -> None:
    """Bytes of a game, of a fork, and of a branch after 50 steps of its own."""
    gc.collect()
    tracemalloc.start()
    worlds = [open_world(load_game(file)) for file in files]
    game = tracemalloc.get_traced_memory()[0] / len(files)
    start = tracemalloc.get_traced_memory()[0]
    nodes = [worlds[0].start for _ in range(64)]
    for seed in range(len(nodes)):
        rng, move = random.Random(seed), nodes[seed]
        for _ in range(50):
            move = worlds[0].step(move.node, rng.choice(move.node.commands))
        nodes[seed] = move
    branch = (tracemalloc.get_traced_memory()[0] - start) / len(nodes)
    tracemalloc.stop()
    spent, _ = _timed(lambda: asyncio.run(_fork(files[0])))
    print(f"memory: {game / 1e3:.0f} kB a game, {branch / 1e3:.1f} kB a branch after 50 steps")
    print(f"fork: {spent / 10_000 * 1e6:.2f} us (TextWorld: a new environment and a replay)")


async def _fork(file: Path) -> None:
    env = await AlfworldEnv().open(Task("", "", "", str(file), ""))
    for _ in range(10_000):
        await env.branch()


def _row(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    print(
        f"{name:30} n {len(seconds):4}  mean {1e3 * statistics.mean(seconds):10.4f} ms"
        f"  median {1e3 * statistics.median(seconds):10.4f} ms"
        f"  p95 {1e3 * ordered[int(0.95 * len(ordered))]:10.4f} ms"
    )


def _ratio(name: str, theirs: list[float], ours: list[float]) -> None:
    print(f"ratio of {name}: {statistics.mean(theirs) / statistics.mean(ours):,.0f} x in the mean")


if __name__ == "__main__":
    main()
