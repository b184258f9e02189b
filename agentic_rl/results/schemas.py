"""Every table's columns, declared once: the same in every run, null where there is no value."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

from agentic_rl.types import TASK_TYPES

VERSION = 1
"""Of the tables; a reader takes older files and fills what they lack with nulls."""

Kind = Literal["text", "int", "float", "bool"]
Value = str | int | float | bool | None

ALL_TYPES = "all"
"""The task type of an evaluation's row over every game of the split."""

TIMES = frozenset({"seconds", "seconds_rollout", "seconds_update", "seconds_other"})
"""Columns that differ between equal runs; with `run_id` the only ones that may."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; an optional one may be null."""

    name: str
    kind: Kind
    doc: str
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """One table; the values of `keys` together name a row."""

    name: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.names)


def _text(name: str, doc: str) -> Column:
    return Column(name, "text", doc)


def _count(name: str, doc: str) -> Column:
    return Column(name, "int", doc)


def _number(name: str, doc: str) -> Column:
    return Column(name, "float", doc)


def _flag(name: str, doc: str) -> Column:
    return Column(name, "bool", doc)


def _maybe(column: Column) -> Column:
    return Column(column.name, column.kind, column.doc, optional=True)


_RUN_ID = _text("run_id", "the run; filled in by the writer")
_UPDATE = _count("update", "updates of the policy before this was sampled; the first update is 1")
_SPLIT = _text("split", "the games' split")
_TASK_TYPE = _text("task_type", "ALFWorld's task type")
_TOKENS = (
    _count("tokens_prefill", "prompt tokens as billed: a prompt sampled n times counts once"),
    _count("tokens_cached", "prompt tokens that the backend took from its cache"),
    _count("tokens_sampled", "tokens sampled"),
)
_COST = _maybe(_number("cost", "in the currency of backend.prices; null without prices"))

UPDATES = Table(
    "updates",
    (
        _RUN_ID,
        _count("update", "from 1"),
        _maybe(_number("reward_mean", "mean return of the trajectories kept")),
        _maybe(_number("reward_std", "population standard deviation of the returns")),
        _maybe(_number("success", "share won of the trajectories kept")),
        *(
            _maybe(_number(f"success_{kind}", f"the same for {kind}; null where none was played"))
            for kind in TASK_TYPES
        ),
        _count("groups", "groups trained on or counted as without signal"),
        _count("groups_dropped", "groups that failures left smaller than rollout.min_group"),
        _count("trajectories", "trajectories kept"),
        _count("trajectories_dropped", "trajectories dropped after a failure"),
        _count("retries", "trajectories begun again after a failure"),
        _count("env_errors", "failures of the environment, retried ones included"),
        _count("sample_errors", "failures of the sampler, retried ones included"),
        _count("stop_won", "trajectories that ended by winning"),
        _count("stop_max_steps", "trajectories that ended at rollout.max_steps"),
        _count("stop_max_trajectory_tokens", "that ended at rollout.max_trajectory_tokens"),
        _count("stop_env_error", "trajectories that ended by the environment's failure"),
        _count("stop_sample_error", "trajectories that ended by the sampler's failure"),
        _count("truncated", "trajectories that a limit ended, steps or tokens"),
        _maybe(_number("malformed_rate", "share of steps whose reply held no action")),
        _maybe(_number("cut_rate", "share of steps whose reply was cut by its length")),
        _maybe(_number("inadmissible_rate", "share of steps whose action was refused")),
        _count("zero_signal_groups", "groups whose advantages are all zero"),
        _count("datums", "token sequences trained on"),
        _count("datums_left_out", "token sequences left out, their advantages all zero"),
        _count(
            "segments_extra", "segments beyond one a trajectory: prompts that broke the history"
        ),
        _maybe(_number("state_shared_rate", "share of steps whose state key another step shares")),
        _maybe(_number("state_aliased_rate", "share of those whose key covers unlike states")),
        _count("env_fallbacks", "games that another engine had to play"),
        _maybe(_number("loss", "the policy loss")),
        _maybe(_number("ratio_mean", "mean importance ratio")),
        _maybe(_number("ratio_max", "largest importance ratio")),
        _maybe(_number("clip_fraction", "share of tokens whose ratio was clipped")),
        _maybe(_number("entropy", "mean entropy a token, as the backend estimates it")),
        _maybe(_number("grad_norm", "length of the gradient before clipping")),
        _count("trainer_rebuilt", "times the trainer had to be rebuilt"),
        _maybe(_number("steps_mean", "mean steps a trajectory")),
        *_TOKENS,
        _count("tokens_trained", "tokens trained on"),
        _COST,
        _number("seconds_rollout", "sampling and playing"),
        _number("seconds_update", "training and making the weights sample"),
        _number("seconds_other", "everything else in the update"),
    ),
    ("run_id", "update"),
)

EVALUATIONS = Table(
    "evaluations",
    (
        _RUN_ID,
        _UPDATE,
        _SPLIT,
        _text("task_type", "ALFWorld's task type, or `all`"),
        _count("n", "episodes that count: those that did not fail"),
        _count("won", "episodes won"),
        _count("errors", "episodes that failed, in no rate's denominator"),
        _maybe(_number("success", "won / n")),
        _maybe(_number("low", "lower end of the 95 % Wilson interval")),
        _maybe(_number("high", "upper end of the 95 % Wilson interval")),
        _maybe(_number("pass_at_k", "unbiased, with k = repeats: games won at least once")),
        _maybe(_number("reward_mean", "mean return")),
        _maybe(_number("steps_mean", "mean steps")),
        _maybe(_number("truncated_rate", "share of episodes that a limit ended")),
        _maybe(_number("format_rate", "share of steps whose reply held an action")),
        _maybe(_number("admissible_rate", "share of steps whose action was admissible")),
        _count("invalid_actions", "steps malformed or inadmissible"),
        *_TOKENS,
        _COST,
        _text("panel_hash", "names the games evaluated; unlike panels are never paired"),
        _text("model", "the backend's model"),
        _count("repeats", "episodes of each game"),
        _number("temperature", "of the samples"),
        _number("seconds", "the whole evaluation's, in every row of it"),
    ),
    ("run_id", "update", "split", "task_type"),
)

_EPISODE_KEYS = (
    _RUN_ID,
    _text("phase", "train or evaluation"),
    _UPDATE,
    _SPLIT,
    _text("task_id", "the game"),
    _count("branch", "which of the game's trajectories; in an evaluation the repeat"),
)

EPISODES = Table(
    "episodes",
    (
        *_EPISODE_KEYS,
        _text("group_id", "the trajectories that an advantage was taken over"),
        _count("repeat", "of an evaluation; 0 in training"),
        _TASK_TYPE,
        _text("game_digest", "sha256 of the game file"),
        _maybe(_number("return", "undiscounted, penalties included; null where it failed")),
        _flag("won", "as the environment says, and nothing else"),
        _text("stop_reason", "won, max_steps, max_trajectory_tokens, env_error, sample_error"),
        _maybe(_text("error", "what failed")),
        _count("steps", "turns taken"),
        _count("invalid_actions", "malformed + inadmissible"),
        _count("malformed", "replies that held no action"),
        _count("inadmissible", "actions that the environment refused"),
        _count("cut", "replies cut by their length"),
        *_TOKENS,
        _count("tokens_trained", "tokens trained on; 0 in an evaluation"),
        _count("sample_seed", "what seeds its samples: `seed`, in an evaluation `evaluation.seed`"),
        _maybe(_text("reward", "name of the reward that gave `return`")),
    ),
    ("run_id", "phase", "update", "split", "task_id", "branch"),
)

STEPS = Table(
    "steps",
    (
        *_EPISODE_KEYS,
        _count("step", "from 0"),
        _maybe(_text("state", "digest of the engine's state before acting; null on textworld")),
        _maybe(_text("inventory", "what is carried before acting, joined by ', '")),
        _maybe(_text("location", "where the agent is before acting")),
        _maybe(_text("action", "null: none was read")),
        _flag("malformed", "the reply held no action"),
        _flag("cut", "the reply was cut by its length"),
        _flag("admissible", "the environment took the action"),
        _maybe(_number("reward", "of the task")),
        _maybe(_number("penalty", "0 or below")),
        _maybe(_number("advantage", "what the loss saw; null in an evaluation")),
        _count("prompt_tokens", "tokens of the prompt"),
        _count("completion_tokens", "tokens of the reply"),
        _maybe(_number("logprob_mean", "mean log-probability of the reply's tokens")),
        _count("segment", "which unbroken token sequence of the trajectory holds it"),
    ),
    ("run_id", "phase", "update", "split", "task_id", "branch", "step"),
)

TABLES: Mapping[str, Table] = MappingProxyType(
    {table.name: table for table in (UPDATES, EVALUATIONS, EPISODES, STEPS)}
)

IDENTITY = (
    Column("recipe", "text", "the recipe's name", optional=True),
    Column("command", "text", "train or eval"),
    Column("seed", "int", "the run's seed"),
    Column("status", "text", "running, finished, failed, stopped or interrupted"),
    Column("folder", "text", "the run folder"),
)
"""What a reader adds to each row from the run's `run.json`."""

RUNS = Table(
    "runs",
    (
        Column("run_id", "text", "the run"),
        *IDENTITY,
        _text("overrides", "what was typed, joined by spaces"),
        _text("panels", "the panel hash of each split, `split=hash`"),
        _maybe(_text("git_commit", "of the checkout the code ran from")),
        _text("started", "UTC"),
        _maybe(_text("ended", "UTC; null while it runs")),
        _count("resumed", "times it was gone on with"),
        _maybe(_text("error", "why it failed or was stopped")),
    ),
    ("run_id",),
)
"""One row a run, made of its `run.json`."""

TOKENS_BILLED = ("tokens_prefill", "tokens_sampled", "tokens_trained")
"""What a run's tokens add up from; the cached ones are apart."""
