"""The typed configuration: the schema Hydra composes against, and the only way into the code."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_rl.errors import ConfigError, did_you_mean
from agentic_rl.wording import near_key, plain

FAMILIES = ("games", "env", "protocol", "reward", "advantage", "loss", "backend", "tracker")
"""One word each: config group, package, registry kind and table column."""

_SEEDS = 2**63
"""Tables hold whole numbers of 64 bits."""

Node = dict[str, Any]


@dataclass
class SamplingConfig:
    """How training samples."""

    temperature: float = 1.0
    top_p: float = 1.0


@dataclass
class RolloutConfig:
    """Limits of a trajectory, and what happens to one that fails."""

    max_steps: int = 50
    max_turn_tokens: int = 2048
    max_trajectory_tokens: int = 12000
    concurrency: int = 64
    on_error: str = "retry"
    retries: int = 2
    min_group: int = 2
    truncation: str = "keep"
    timeout: float = 600.0


@dataclass
class OptimConfig:
    """Adam, apart from the learning rate."""

    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


@dataclass
class EvaluationConfig:
    """When and how games are scored; train's own evaluations and `eval` share it."""

    every: int = 20
    at_start: bool = True
    splits: list[str] = field(default_factory=lambda: ["valid_unseen"])
    repeats: int = 1
    temperature: float = 0.01
    top_p: float = 1.0
    seed: int = 42


@dataclass
class SaveConfig:
    """What is kept: a checkpoint every so many updates, and which trajectories in full."""

    every: int = 20
    trajectories: str = "evaluation"


@dataclass
class BudgetConfig:
    """The run stops, resumable, before it spends more; null is no limit."""

    max_cost: float | None = None
    max_tokens: int | None = None


@dataclass
class Experiment:
    """One experiment. Component nodes are checked by their registries when they are built."""

    command: str = "train"
    recipe: str | None = None
    seed: int = 0
    updates: int = 80
    games_per_update: int = 8
    group_size: int = 8
    lr: float = 1e-6
    checkpoint: str | None = None
    overwrite: bool = False
    split: Any = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    save: SaveConfig = field(default_factory=SaveConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    games: Node = field(default_factory=dict)
    env: Node = field(default_factory=dict)
    protocol: Node = field(default_factory=dict)
    reward: Node = field(default_factory=dict)
    advantage: Node = field(default_factory=dict)
    loss: Node = field(default_factory=dict)
    backend: Node = field(default_factory=dict)
    tracker: Node = field(default_factory=dict)

    @classmethod
    def from_cfg(cls, cfg: Any) -> "Experiment":
        """Checks keys, types and values of a DictConfig or a mapping; a hydra block is dropped."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        try:
            content = OmegaConf.to_container(OmegaConf.create(cfg), resolve=True)
            assert isinstance(content, dict)
            content.pop("hydra", None)
            content.pop("defaults", None)
            _refuse_unknown_keys(content)
            experiment = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(cls), content))
        except OmegaConfBaseException as error:
            raise ConfigError(plain(str(error.msg or error), str(error.full_key or ""))) from error
        assert isinstance(experiment, cls)
        experiment._check_values()
        return experiment

    def to_container(self) -> dict[str, Any]:
        """Plain dicts and lists, fit for YAML and JSON."""
        from omegaconf import OmegaConf

        container = OmegaConf.to_container(OmegaConf.structured(self), resolve=True)
        assert isinstance(container, dict)
        return {str(key): value for key, value in container.items()}

    def _check_values(self) -> None:
        _at_least(
            ("updates", self.updates, 0),
            ("games_per_update", self.games_per_update, 1),
            ("group_size", self.group_size, 1),
            ("rollout.max_steps", self.rollout.max_steps, 1),
            ("rollout.max_turn_tokens", self.rollout.max_turn_tokens, 1),
            ("rollout.max_trajectory_tokens", self.rollout.max_trajectory_tokens, 1),
            ("rollout.concurrency", self.rollout.concurrency, 1),
            ("rollout.retries", self.rollout.retries, 0),
            ("rollout.min_group", self.rollout.min_group, 1),
            ("evaluation.every", self.evaluation.every, 0),
            ("evaluation.repeats", self.evaluation.repeats, 1),
            ("save.every", self.save.every, 0),
            ("lr", self.lr, 0),
            ("sampling.temperature", self.sampling.temperature, 0),
            ("evaluation.temperature", self.evaluation.temperature, 0),
            ("optim.grad_clip_norm", self.optim.grad_clip_norm, 0),
        )
        _finite(
            ("lr", self.lr),
            ("rollout.timeout", self.rollout.timeout),
            ("sampling.temperature", self.sampling.temperature),
            ("evaluation.temperature", self.evaluation.temperature),
        )
        if not self.rollout.timeout > 0:
            raise ConfigError(f"rollout.timeout={self.rollout.timeout} is not above 0")
        for key, seed in (("seed", self.seed), ("evaluation.seed", self.evaluation.seed)):
            if not -_SEEDS <= seed < _SEEDS:
                raise ConfigError(f"{key}={seed} does not fit into 64 bits")
        budget = (("max_cost", self.budget.max_cost), ("max_tokens", self.budget.max_tokens))
        _at_least(*((f"budget.{key}", limit, 0) for key, limit in budget if limit is not None))
        _one_of("command", self.command, ("train", "eval"))
        _one_of("rollout.on_error", self.rollout.on_error, ("retry", "drop", "fail"))
        _one_of("rollout.truncation", self.rollout.truncation, ("keep", "zero", "mask"))
        _one_of("save.trajectories", self.save.trajectories, ("all", "evaluation", "none"))
        for key, value in (
            ("sampling.top_p", self.sampling.top_p),
            ("evaluation.top_p", self.evaluation.top_p),
        ):
            if not 0 < value <= 1:
                raise ConfigError(f"{key}={value} is not above 0 and at most 1")
        if self.rollout.min_group > self.group_size:
            self.rollout.min_group = self.group_size


def schema_keys() -> list[str]:
    """Every key of an experiment, sections with their own; a component's node is one key."""
    from omegaconf import DictConfig, OmegaConf

    schema = OmegaConf.structured(Experiment)
    keys: list[str] = []
    for key in map(str, schema):
        section = schema[key]
        keys.append(key)
        if key not in FAMILIES and isinstance(section, DictConfig):
            keys += [f"{key}.{inner}" for inner in map(str, section)]
    return keys


def list_keys() -> list[str]:
    """Keys whose value is a list."""
    from omegaconf import ListConfig, OmegaConf

    schema = OmegaConf.structured(Experiment)
    return [key for key in schema_keys() if isinstance(OmegaConf.select(schema, key), ListConfig)]


def _refuse_unknown_keys(content: Mapping[Any, Any]) -> None:
    """`+key=value` opens Hydra's schema, so keys are checked once more, sections included."""
    known = schema_keys()
    sections = {key.partition(".")[0] for key in known if "." in key}
    for key, value in ((str(key), value) for key, value in content.items()):
        inner = value if key in sections and isinstance(value, dict) else ()
        for typed in (key, *(f"{key}.{name}" for name in inner)):
            if typed not in known:
                raise ConfigError(
                    f"no key '{typed}'.{near_key(typed, known)}"
                    " See `agentic-rl --cfg job` for all keys."
                )


def _at_least(*bounds: tuple[str, float, float]) -> None:
    for key, value, least in bounds:
        if not value >= least:
            raise ConfigError(f"{key}={value} is below {least}")


def _finite(*values: tuple[str, float]) -> None:
    for key, value in values:
        if not math.isfinite(value):
            raise ConfigError(f"{key}={value} is no finite number")


def _one_of(key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        near = did_you_mean(value, choices)
        raise ConfigError(f"{key}={value} is not one of {', '.join(choices)}.{near}")
