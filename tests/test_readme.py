"""What the README shows is what there is."""

import re
import shlex
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from agentic_rl import commands
from agentic_rl.compose import compose

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:bash|console)\n(.*?)```", README, flags=re.DOTALL)
LINES = [
    line.lstrip("$ ").split("  #")[0]
    for block in BLOCKS
    for line in block.splitlines()
    if line.lstrip("$ ").startswith("agentic-rl ")
]
FLAGS = re.findall(r"^\| `--.*?` \| (`[^|]*`) \| ([^|]*) \|$", README, flags=re.MULTILINE)


def test_the_recipe_is_shown_whole() -> None:
    (shown,) = re.findall(r"<!-- recipe -->\n```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert shown == (ROOT / "recipes" / "alfworld_grpo.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("line", LINES)
def test_every_command_shown_exists(line: str) -> None:
    words = shlex.split(line)[1:]
    command = words.pop(0) if "=" not in words[0] and words[0][0] not in "-+" else "train"
    assert command in commands.names()
    module = commands.load(command)
    if not module.HYDRA or "relaesed" in line:
        return
    overrides = [word for word in words if "=" in word and "checkpoint=" not in word]
    if not any(",4" in word or "0.05" in word for word in overrides):
        compose(module.PRIMARY, overrides)


@pytest.mark.parametrize(("keys", "values"), FLAGS)
def test_published_values(keys: str, values: str) -> None:
    """The table from the published flags to our keys, against the recipe."""
    cfg = compose("train", ["+recipe=alfworld_grpo_qwen35_4b"])
    named = re.findall(r"`([a-z_.0-9]+)`", keys)
    expected = [value.strip() for value in values.split(",")]
    for key, value in zip(named, expected, strict=False):
        found = OmegaConf.select(cfg, key, throw_on_missing=True)
        if value:
            assert str(found) == value or float(found) == float(value), key
