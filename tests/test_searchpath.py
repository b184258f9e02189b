"""Where YAML is found: the caller's folders, ours, plug-ins'."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from agentic_rl import searchpath
from agentic_rl.compose import compose, open_loader
from agentic_rl.config import FAMILIES, Experiment
from agentic_rl.errors import ConfigError

RECIPE = "# @package _global_\n# {about}\nseed: {seed}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "recipes" / "inner").mkdir(parents=True)
    (tmp_path / "conf" / "reward").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _recipe(here: Path, name: str, seed: int) -> None:
    (here / "recipes" / f"{name}.yaml").write_text(RECIPE.format(about=name, seed=seed))


def _ours(folder: str) -> list[str]:
    return sorted(file.stem for file in searchpath.data_dir(folder).glob("*.yaml"))


def test_every_recipe_of_ours_is_found_from_anywhere(here: Path) -> None:
    assert _ours("recipes")
    for name in _ours("recipes"):
        assert Experiment.from_cfg(compose("train", [f"+recipe={name}"])).updates >= 0


@pytest.mark.parametrize("family", FAMILIES)
def test_every_option_of_ours_is_found(family: str, here: Path) -> None:
    options = open_loader().get_group_options(family)
    assert set(_ours(f"conf/{family}")) <= set(options)
    for option in options:
        assert compose("train", [f"{family}={option}"])[family].name


def test_a_recipe_of_ones_own_may_shadow_ours(here: Path) -> None:
    ours = compose("train", ["+recipe=debug"])
    _recipe(here, "debug", 77)
    mine = compose("train", ["+recipe=debug"])
    assert (ours.seed, mine.seed) == (0, 77)


def test_recipes_may_lie_deeper_and_be_listed_and_stacked(here: Path) -> None:
    _recipe(here, "inner/deep", 5)
    _recipe(here, "mine", 6)
    assert compose("train", ["+recipe=inner/deep"]).seed == 5
    assert compose("train", ["+recipe=[mine,inner/deep]"]).seed == 5
    loader = open_loader()
    assert {"mine", *_ours("recipes")} <= set(loader.get_group_options("recipe"))
    assert loader.get_group_options("recipe/inner") == ["deep"]


def test_an_option_of_ones_own_is_added(here: Path) -> None:
    option = here / "conf" / "reward" / "mine.yaml"
    option.write_text("defaults: [success_minus_invalid, _self_]\npenalty: 0.5\n")
    reward = compose("train", ["reward=mine"]).reward
    assert (reward.name, reward.penalty) == ("success_minus_invalid", 0.5)


def test_an_option_of_ones_own_does_not_replace_ours(here: Path) -> None:
    option = here / "conf" / "reward" / "success_minus_invalid.yaml"
    option.write_text("name: success_minus_invalid\npenalty: 0.5\n")
    with pytest.raises(ConfigError, match="two options are called reward=success_minus_invalid"):
        compose("train")
    option.write_bytes((searchpath.data_dir("conf") / "reward" / option.name).read_bytes())
    assert compose("train").reward.penalty == 0.1


def test_a_primary_of_ones_own_does_not_replace_ours(here: Path) -> None:
    (here / "conf" / "train.yaml").write_text("seed: 99\n")
    assert compose("train").seed == 0


def test_composing_twice_is_composing_once(here: Path) -> None:
    first = compose("train", ["+recipe=debug", "lr=0.5"])
    compose("eval")
    second = compose("train", ["+recipe=debug", "lr=0.5"])
    assert OmegaConf.to_yaml(first) == OmegaConf.to_yaml(second)
    assert "hydra" not in first
    assert not (here / "outputs").exists()


def test_one_more_folder_of_configs(here: Path) -> None:
    (here / "saved").mkdir()
    (here / "saved" / "resolved.yaml").write_text(
        "defaults: [experiment_schema, run_folder, _self_]\nseed: 8\n"
    )
    assert compose("resolved", config_dir="saved").seed == 8
    with pytest.raises(ConfigError, match="no such folder"):
        compose("resolved", config_dir="elsewhere")


def test_folders_of_plugins_are_found_without_importing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = here / "site" / "stall"
    (package / "wares").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "wares" / "stalled.yaml").write_text(RECIPE.format(about="A ware.", seed=3))
    info = here / "site" / "stall-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stall\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agentic_rl.recipes]\nstall = stall.wares\ngone = no_such_package.recipes\n"
    )
    monkeypatch.syspath_prepend(str(here / "site"))
    assert compose("train", ["+recipe=stalled"]).seed == 3
    found = dict(searchpath.plugin_folders("agentic_rl.recipes"))
    assert found == {"stall": package / "wares"}
