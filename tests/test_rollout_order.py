"""A whole training run writes the same tables, whatever comes back first."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentic_rl.compose import compose
from agentic_rl.config import Experiment
from agentic_rl.console import Console
from agentic_rl.parts import Parts
from agentic_rl.results import RunFolder, new_record
from agentic_rl.results.schemas import TABLES
from agentic_rl.session import Session
from agentic_rl.train import train
from tests.processes import tables

OVERRIDES = [
    "+recipe=debug",
    "updates=2",
    "games_per_update=3",
    "group_size=4",
    "games.valid_unseen=4",
    "evaluation.every=1",
    "rollout.max_steps=6",
]


class Late:
    """Passes everything on, but answers `method` after a random while."""

    def __init__(self, inner: Any, methods: tuple[str, ...], rng: random.Random) -> None:
        self._inner, self._methods, self._rng = inner, methods, rng

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._methods:
            return found

        async def late(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(self._rng.random() / 200)
            result = await found(*args, **kwargs)
            await asyncio.sleep(self._rng.random() / 200)
            if name in ("open", "branch"):
                return Late(result, ("step", "branch"), self._rng)
            return result

        return late


def _run(folder: Path, protocol: str, concurrency: int, seed: int | None) -> Path:
    overrides = [*OVERRIDES, f"protocol={protocol}", f"rollout.concurrency={concurrency}"]
    experiment = Experiment.from_cfg(compose("train", overrides))
    parts = Parts.build(experiment)
    if seed is not None:
        rng = random.Random(seed)
        env, backend = Late(parts.env, ("open",), rng), Late(parts.backend, ("sample",), rng)
        parts = replace(parts, env=env, backend=backend)
    run = RunFolder.create(folder, new_record("train", recipe="debug", overrides=overrides, seed=0))
    games = {split: parts.games.load(split) for split in ("train", "valid_unseen")}
    session = Session(experiment, parts, run, Console(bars=False), games)
    asyncio.run(train(session, 0))
    run.finish("finished", None)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["tool_call", "think_action"])
def test_tables_do_not_depend_on_order_or_concurrency(protocol: str, tmp_path: Path) -> None:
    expected = tables(_run(tmp_path / "plain", protocol, 64, None))
    assert all(expected[name] for name in TABLES)
    for number, concurrency in enumerate((1, 5, 64)):
        folder = _run(tmp_path / f"late-{number}", protocol, concurrency, number)
        assert tables(folder) == expected
