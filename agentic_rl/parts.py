"""The parts of one experiment, built from its configuration and checked against one another."""

from dataclasses import dataclass

from agentic_rl.advantage import advantages
from agentic_rl.backend import backends
from agentic_rl.config import Experiment
from agentic_rl.env import envs
from agentic_rl.errors import ConfigError
from agentic_rl.games import games_sources
from agentic_rl.interfaces import (
    Advantage,
    Backend,
    EnvPool,
    Games,
    Loss,
    PromptProtocol,
    Reward,
    Tracker,
)
from agentic_rl.loss import losses
from agentic_rl.protocol import protocols
from agentic_rl.reward import rewards
from agentic_rl.tracker import trackers
from agentic_rl.training import Adam


@dataclass(frozen=True)
class Parts:
    """One component of each family."""

    games: Games
    env: EnvPool
    protocol: PromptProtocol
    reward: Reward
    advantage: Advantage
    loss: Loss
    backend: Backend
    tracker: Tracker

    @classmethod
    def build(cls, experiment: Experiment) -> "Parts":
        """ConfigError for a name, an option or a combination that cannot work."""
        parts = cls(
            games=games_sources.build(experiment.games),
            env=envs.build(experiment.env),
            protocol=protocols.build(experiment.protocol),
            reward=rewards.build(experiment.reward),
            advantage=advantages.build(experiment.advantage),
            loss=losses.build(experiment.loss),
            backend=backends.build(experiment.backend),
            tracker=trackers.build(experiment.tracker),
        )
        parts.backend.bind(parts.protocol.render)
        _check(experiment, parts)
        return parts


def adam(experiment: Experiment) -> Adam:
    optim = experiment.optim
    return Adam(
        lr=experiment.lr,
        beta1=optim.beta1,
        beta2=optim.beta2,
        eps=optim.eps,
        weight_decay=optim.weight_decay,
        grad_clip_norm=optim.grad_clip_norm,
    )


def _check(experiment: Experiment, parts: Parts) -> None:
    """What the backend cannot do is refused before anything is spent."""
    name = experiment.backend["name"]
    can = parts.backend.capabilities
    for key, top_p in (
        ("sampling.top_p", experiment.sampling.top_p),
        ("evaluation.top_p", experiment.evaluation.top_p),
    ):
        if top_p < 1 and not can.top_p:
            raise ConfigError(f"backend '{name}' cannot cut by probability: set {key}=1")
    check_limit(experiment, parts)
    if experiment.command == "train":
        _check_training(experiment, parts)


def check_limit(experiment: Experiment, parts: Parts) -> None:
    """Once more after the backend has started: a service tells its limit only then."""
    limit = parts.backend.capabilities.max_sequence_tokens
    if limit is not None and experiment.rollout.max_trajectory_tokens > limit:
        raise ConfigError(
            f"backend '{experiment.backend['name']}' takes {limit} tokens at most:"
            f" set rollout.max_trajectory_tokens={limit} or below"
        )


def _check_training(experiment: Experiment, parts: Parts) -> None:
    name, can = experiment.backend["name"], parts.backend.capabilities
    if not can.train:
        raise ConfigError(
            f"backend '{name}' cannot train: use `agentic-rl eval`, or another backend"
        )
    if not can.losses & {parts.loss.name, "*"}:
        raise ConfigError(
            f"backend '{name}' does not know the loss '{parts.loss.name}':"
            f" choose loss={'|'.join(sorted(can.losses))}"
        )
    if experiment.budget.max_cost is not None and not experiment.backend.get("prices"):
        raise ConfigError("budget.max_cost needs prices: set backend.prices, or budget.max_tokens")
    _check_needs(experiment, parts)


def _check_needs(experiment: Experiment, parts: Parts) -> None:
    estimator, needs = experiment.advantage["name"], parts.advantage.needs
    if "state" in needs and not parts.env.gives_state:
        raise ConfigError(
            f"advantage '{estimator}' needs the engine's facts of each state, which this"
            " environment does not give: set env.engine=compiled"
        )
    if "score" in needs and not parts.backend.capabilities.score:
        name = experiment.backend["name"]
        raise ConfigError(
            f"advantage '{estimator}' needs log-probabilities of given text,"
            f" which backend '{name}' cannot score: choose another advantage"
        )
    if "score" in needs and not experiment.advantage.get("skill"):
        raise ConfigError("the advantage needs the teacher's text: set advantage.skill='...'")
