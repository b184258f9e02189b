"""Every reward, advantage and loss, and every preset of them, as their option files have it."""

import dataclasses
import re

import pytest
from omegaconf import OmegaConf

from agentic_rl.advantage import advantages
from agentic_rl.compose import compose
from agentic_rl.interfaces import Advantage, Loss, Reward
from agentic_rl.loss import losses
from agentic_rl.reward import rewards
from agentic_rl.searchpath import data_dir

FAMILIES = {
    "reward": (rewards, Reward),
    "advantage": (advantages, Advantage),
    "loss": (losses, Loss),
}
NAMES = [(family, name) for family, (registry, _) in FAMILIES.items() for name in registry.names()]
PRESETS = [
    (family, file.stem)
    for family, (registry, _) in FAMILIES.items()
    for file in sorted(data_dir("conf").joinpath(family).glob("*.yaml"))
    if file.stem not in registry.names()
]


def spec(family: str, option: str) -> dict[str, object]:
    node = OmegaConf.to_container(compose("train", [f"{family}={option}"])[family], resolve=True)
    assert isinstance(node, dict)
    return node


def text(family: str, option: str) -> str:
    return data_dir("conf").joinpath(family, f"{option}.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("family", "name"), NAMES)
def test_a_component_equals_its_option_file(family: str, name: str) -> None:
    registry, protocol = FAMILIES[family]
    component = registry.build(spec(family, name))
    assert component == registry.get(name)()
    assert isinstance(component, protocol)
    fields = [field.name for field in dataclasses.fields(component)]
    assert list(spec(family, name)) == ["name", *fields]


@pytest.mark.parametrize(("family", "name"), [*NAMES, *PRESETS])
def test_every_field_has_its_comment_above(family: str, name: str) -> None:
    lines = text(family, name).splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        key = re.match(r"(\w+):", line)
        if key and key[1] not in ("name", "defaults"):
            assert above.startswith("# "), f"{family}/{name}: {key[1]} has no comment"


@pytest.mark.parametrize(("family", "preset"), PRESETS)
def test_a_preset_builds_and_names_its_source(family: str, preset: str) -> None:
    registry, _ = FAMILIES[family]
    component = registry.build(spec(family, preset))
    base = registry.get(str(spec(family, preset)["name"]))()
    assert type(component) is type(base)
    assert text(family, preset).startswith("# Source: ")


def test_there_are_presets() -> None:
    assert {name for _, name in PRESETS} >= {
        "grpo_verl",
        "grpo_trl",
        "grpo_lab",
        "gigpo_paper",
        "gigpo_released",
        "hgpo_released",
        "hgpo_anonymous",
    }


@pytest.mark.parametrize(
    ("preset", "differs"),
    [
        ("grpo_verl", {"singleton": "raw"}),
        ("grpo_trl", {"eps": 1e-4}),
        ("grpo_art", {"ddof": 0}),
        ("grpo_lab", {"ddof": 0, "eps": 1e-4}),
        ("rloo_verl", {"singleton": "raw"}),
        ("reinforce_pp_baseline", {"baseline": "group", "singleton": "raw"}),
        ("gigpo_paper", {"normalize": "mean_std", "baseline": "trajectories"}),
        ("gigpo_released", {"normalize": "mean_std", "singleton": "raw"}),
        ("hgpo_released", {}),
        ("hgpo_anonymous", {"weights": "level"}),
        ("dr_grpo", {}),
    ],
)
def test_presets_differ_from_their_base_in_just_this(
    preset: str, differs: dict[str, object]
) -> None:
    node = spec("advantage", preset)
    base = spec("advantage", str(node["name"]))
    assert {key: value for key, value in node.items() if base[key] != value} == differs
