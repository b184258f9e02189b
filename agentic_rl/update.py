"""One update: play its games, score them, estimate, train, and write it all down."""

import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from agentic_rl import datums, evidence
from agentic_rl.advantage.state_sharing import state_sharing
from agentic_rl.errors import BackendError
from agentic_rl.parts import adam
from agentic_rl.results import trajectory_row
from agentic_rl.rollout import GroupPlan, Sampling
from agentic_rl.scoring import Survivors, estimate, score
from agentic_rl.session import Session
from agentic_rl.tabulate import (
    Context,
    Row,
    deviation,
    episode_row,
    mean,
    rollout_columns,
    step_rows,
)
from agentic_rl.training import UpdateMetrics, Usage
from agentic_rl.types import Advantages, Batch, RewardSignal, Task, Trajectory, TrajectoryGroup

TRAIN = "train"


@dataclass(frozen=True, slots=True)
class _Collected:
    """One update's groups, with what was made of those that survived."""

    groups: Sequence[TrajectoryGroup]
    survivors: Survivors
    advantages: Advantages
    batch: Batch
    counts: datums.BatchCounts


def order(tasks: Sequence[Task], seed: int) -> list[Task]:
    """The games in the order of training; the same for the same seed, whatever the machine."""
    shuffled = list(tasks)
    random.Random(f"games/{seed}").shuffle(shuffled)
    return shuffled


async def play_and_learn(session: Session, update: int) -> Row:
    """One update: its row, which is in the tables when this returns, as all its other rows are.

    `session.learning` is true while the weights are neither those before nor those after.
    """
    started = time.monotonic()
    before = session.usage
    collected = await _collect(session, update)
    rolled = time.monotonic()
    session.learning = True
    metrics = await _learn(session, collected.batch)
    learned = time.monotonic()
    _write_trajectories(session, update, collected)
    row = _row(session, update, collected, metrics, session.usage - before)
    row["seconds_rollout"] = rolled - started
    row["seconds_update"] = learned - rolled
    row["seconds_other"] = time.monotonic() - learned
    session.folder.append("updates", [row])
    session.learning = False
    return row


def tell(session: Session, row: Row) -> None:
    """The update to the tracker and to the person who watches; both may fail, the update stays."""
    session.parts.tracker.log(numbers(row), row["update"])
    session.console.line(_line(session, row))


async def _collect(session: Session, update: int) -> _Collected:
    experiment, parts = session.experiment, session.parts
    plans = _plans(session, update)
    sampling = Sampling(
        "train", update, experiment.seed, experiment.sampling.temperature, experiment.sampling.top_p
    )
    total = len(plans) * experiment.group_size
    with session.console.bar(f"update {update}/{experiment.updates}", total) as bar:
        groups = await session.collector.collect(
            plans, sampling, on_finished=lambda trajectory: bar.advance()
        )
    _refuse_total_failure(groups)
    survivors = score(groups, parts.reward, experiment.rollout)
    if "score" in parts.advantage.needs:
        skill = str(experiment.advantage.get("skill") or "")
        scored = await evidence.gather(survivors.groups, parts.backend, skill)
        survivors = Survivors(tuple(scored), survivors.groups_dropped)
    advantages = estimate(survivors.groups, parts.advantage, experiment.rollout)
    batch, counts = datums.build(survivors.groups, advantages)
    return _Collected(groups, survivors, advantages, batch, counts)


def _plans(session: Session, update: int) -> list[GroupPlan]:
    """The update's games: the next batch of the shuffled order, which wraps around."""
    experiment = session.experiment
    tasks = order(session.games[TRAIN].tasks, experiment.seed)
    first = (update - 1) * experiment.games_per_update
    branches = tuple(range(experiment.group_size))
    return [
        GroupPlan(tasks[(first + number) % len(tasks)], f"{update}-{number}", branches)
        for number in range(experiment.games_per_update)
    ]


async def _learn(session: Session, batch: Batch) -> UpdateMetrics:
    """Nothing to learn is no update: Adam's state stays as it is."""
    if not batch.data:
        return UpdateMetrics()
    backend = session.parts.backend
    metrics = await backend.update(batch, session.parts.loss, adam(session.experiment))
    await backend.refresh()
    return metrics


def _write_trajectories(session: Session, update: int, collected: _Collected) -> None:
    experiment = session.experiment
    context = Context("train", update, experiment.seed, str(experiment.reward["name"]))
    keep = experiment.save.trajectories == "all"
    scored = _scored(collected)
    for group in collected.groups:
        for trajectory in group.trajectories:
            signal, advantages = scored.get(id(trajectory), (None, None))
            trained = 0
            if advantages is not None and trajectory.segments:
                trained = _trained_tokens(trajectory, advantages)
            session.folder.append("steps", step_rows(trajectory, context, signal, advantages))
            session.folder.append("episodes", [episode_row(trajectory, context, signal, trained)])
            if keep:
                session.folder.append_trajectories(
                    [
                        trajectory_row(
                            trajectory,
                            phase="train",
                            update=update,
                            messages=session.transcript(trajectory),
                            signal=signal,
                            advantages=advantages,
                        )
                    ]
                )


def _scored(collected: _Collected) -> dict[int, tuple[RewardSignal, Sequence[float]]]:
    """Signal and advantages of each trajectory that was scored, by identity."""
    return {
        id(trajectory): (signal, row)
        for group, rows in zip(collected.survivors.groups, collected.advantages, strict=True)
        for trajectory, signal, row in zip(
            group.group.trajectories, group.signals, rows, strict=True
        )
    }


def _trained_tokens(trajectory: Trajectory, advantages: Sequence[float]) -> int:
    """Tokens of the segments that carry a signal: what a trainer reads and bills."""
    trained = {
        step.segment for step, value in zip(trajectory.steps, advantages, strict=True) if value
    }
    return sum(len(trajectory.segments[segment]) for segment in trained)


def _row(
    session: Session, update: int, collected: _Collected, metrics: UpdateMetrics, used: Usage
) -> Row:
    groups = collected.survivors.groups
    returns = [value for group in groups for value in group.returns]
    sharing = state_sharing(groups, getattr(session.parts.advantage, "key", "observation"))
    counts = collected.counts
    return {
        "update": update,
        "reward_mean": mean(returns),
        "reward_std": deviation(returns),
        **rollout_columns(collected.groups),
        "groups": len(groups),
        "groups_dropped": collected.survivors.groups_dropped,
        "zero_signal_groups": counts.zero_signal_groups,
        "datums": counts.datums,
        "datums_left_out": counts.left_out,
        "segments_extra": counts.extra_segments,
        "state_shared_rate": sharing.shared_rate,
        "state_aliased_rate": sharing.aliased_rate,
        "env_fallbacks": session.parts.env.fallbacks,
        **asdict(metrics),
        "tokens_prefill": used.prefill,
        "tokens_cached": used.cached,
        "tokens_sampled": used.sampled,
        "tokens_trained": used.trained,
        "cost": session.cost(used),
    }


def _line(session: Session, row: Row) -> str:
    def percent(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.1f} %"

    def number(value: float | None) -> str:
        # The sum takes the sign off a zero.
        return "-" if value is None else f"{round(value, 3) + 0.0:.3f}"

    silent = row["zero_signal_groups"]
    seconds = row["seconds_rollout"] + row["seconds_update"] + row["seconds_other"]
    cost = "" if row["cost"] is None else f", cost {row['cost']:.2f}"
    return (
        f"update {row['update']}/{session.experiment.updates}:"
        f" success {percent(row['success'])}, return {number(row['reward_mean'])},"
        f" loss {number(row['loss'])}, entropy {number(row['entropy'])},"
        f" {f'{silent} without signal, ' if silent else ''}{seconds:.1f} s{cost}"
    )


def numbers(row: Row) -> dict[str, float]:
    return {
        f"train/{key}": float(value)
        for key, value in row.items()
        if isinstance(value, int | float) and key != "update"
    }


def _refuse_total_failure(groups: Sequence[TrajectoryGroup]) -> None:
    every = [entry for group in groups for entry in group.trajectories]
    if every and all(entry.failed for entry in every):
        raise BackendError(f"every trajectory of the update failed; the first: {every[0].error}")
