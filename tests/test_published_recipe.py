"""`+recipe=alfworld_grpo_qwen35_4b` is the published run, row by row."""

import pytest
from omegaconf import DictConfig, OmegaConf

from agentic_rl.compose import compose
from agentic_rl.config import Experiment

PUBLISHED = {
    "backend.name": "pytrio",
    "backend.model": "Qwen/Qwen3.5-4B",
    "backend.lora_rank": 32,
    "games.name": "alfworld",
    "games.limit": None,
    "updates": 80,
    "games_per_update": 8,
    "group_size": 8,
    "rollout.max_steps": 50,
    "rollout.max_trajectory_tokens": 12000,
    "rollout.max_turn_tokens": 2048,
    "sampling.temperature": 1.0,
    "sampling.top_p": 1.0,
    "protocol.name": "tool_call",
    "protocol.template_options.enable_thinking": False,
    "reward.name": "success_minus_invalid",
    "reward.success": 1.0,
    "reward.penalty": 0.1,
    "reward.counts": ["malformed", "inadmissible"],
    "advantage.name": "group_mean",
    "loss.name": "ppo",
    "loss.clip_low_threshold": 0.8,
    "loss.clip_high_threshold": 1.2,
    "lr": 1e-6,
    "optim.beta1": 0.9,
    "optim.beta2": 0.95,
    "optim.grad_clip_norm": 1.0,
    "optim.weight_decay": 0.0,
    "save.every": 20,
    "evaluation.every": 20,
    "evaluation.splits": ["valid_seen", "valid_unseen"],
    "evaluation.temperature": 0.01,
    "evaluation.top_p": 1.0,
    "evaluation.seed": 42,
    "evaluation.repeats": 1,
    "tracker.name": "swanlab",
    "tracker.mode": "online",
}


@pytest.fixture(scope="module")
def recipe() -> DictConfig:
    return compose("train", ["+recipe=alfworld_grpo_qwen35_4b"])


@pytest.mark.parametrize("key", PUBLISHED)
def test_a_row_of_the_published_configuration(recipe: DictConfig, key: str) -> None:
    found = OmegaConf.select(recipe, key, throw_on_missing=True)
    plain = OmegaConf.to_container(found) if OmegaConf.is_config(found) else found
    assert plain == PUBLISHED[key]


def test_the_recipe_is_a_valid_experiment(recipe: DictConfig) -> None:
    assert Experiment.from_cfg(recipe).updates == 80


def test_parts_can_be_exchanged_without_naming_their_fields() -> None:
    words = ["+recipe=alfworld_grpo_qwen35_4b", "tracker=none", "games=builtin", "backend=linear"]
    assert Experiment.from_cfg(compose("train", words)).backend["name"] == "linear"
