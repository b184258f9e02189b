"""Players that follow a script."""

import asyncio
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from agentic_rl.backend import backends
from agentic_rl.backend.scripted import Scripted
from agentic_rl.errors import BackendError, ConfigError
from agentic_rl.types import Prompt, SamplingParams, Task, View

CONF = Path(__file__).parents[2] / "conf" / "backend"
TASK = Task("a", "train", "x", "f", "d", walkthrough=("go to box 1", "take key 1 from box 1"))
VIEW = View("find the key 1.", (), "", tuple(f"go to box {n}" for n in range(1, 6)))


def sample(backend: Scripted, turn: int = 0, seed: int = 0, n: int = 1) -> list[str]:
    backend.bind(lambda action: f"<{action}>")
    prompt = Prompt((), (), (), VIEW, TASK, 0, turn)
    completions = asyncio.run(backend.sample(prompt, n, SamplingParams(1.0, 1.0, 10, seed)))
    assert all(c.tokens == () and c.logprobs == () for c in completions)
    return [completion.text for completion in completions]


def test_yaml_builds_the_defaults() -> None:
    plain = OmegaConf.load(CONF / "scripted.yaml")
    assert backends.build(OmegaConf.to_container(plain)) == Scripted()
    preset = OmegaConf.merge(plain, OmegaConf.load(CONF / "scripted_walkthrough.yaml"))
    del preset["defaults"]
    assert backends.build(OmegaConf.to_container(preset)) == Scripted(policy="walkthrough")


def test_random_depends_on_the_seed_alone_and_covers_the_list() -> None:
    assert sample(Scripted(), seed=7, n=20) == sample(Scripted(), turn=3, seed=7, n=20)
    assert sample(Scripted(), seed=7, n=20) != sample(Scripted(), seed=8, n=20)
    assert set(sample(Scripted(), n=100)) == {f"<{action}>" for action in VIEW.actions}


def test_walkthrough_is_played_in_order() -> None:
    player = Scripted(policy="walkthrough")
    assert sample(player, n=2) == ["<go to box 1>"] * 2
    assert sample(player, turn=1) == ["<take key 1 from box 1>"]
    with pytest.raises(BackendError, match="turn 3"):
        sample(player, turn=2)


def test_it_neither_learns_nor_saves(tmp_path: Path) -> None:
    assert not Scripted().capabilities.train
    with pytest.raises(BackendError, match="backend=linear"):
        asyncio.run(Scripted().save(tmp_path, "x"))


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'random'"):
        Scripted(policy="randm")
