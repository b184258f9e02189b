"""Score the policy as it is: every listed game once per repeat, each its own trajectory."""

import time
from collections.abc import Sequence

from agentic_rl.hashing import panel_hash
from agentic_rl.results import trajectory_row
from agentic_rl.results.statistics import pass_at_k, wilson
from agentic_rl.rollout import GroupPlan, Sampling
from agentic_rl.scoring import TRUNCATED, signal_of
from agentic_rl.session import Session
from agentic_rl.tabulate import Context, Row, episode_row, mean, share, step_rows
from agentic_rl.training import Usage
from agentic_rl.types import Task, Trajectory, TrajectoryGroup


async def evaluate(
    session: Session, update: int, splits: Sequence[str], done: Sequence[Row] = ()
) -> list[Row]:
    """Plays what `done` (episode rows of this very evaluation) lacks; gives the evaluation's rows.

    The rows are in the tables when it returns, in an order that does not depend on timing.
    BudgetReached ends it between two episodes; what was played stays.
    """
    session.check_budget()
    rows: list[Row] = []
    for split in dict.fromkeys(splits):
        earlier = [row for row in done if row["split"] == split]
        rows += await _evaluate_split(session, update, split, earlier)
    session.folder.append("evaluations", rows)
    return rows


async def _evaluate_split(
    session: Session, update: int, split: str, earlier: Sequence[Row]
) -> list[Row]:
    started = time.monotonic()
    settings = session.experiment.evaluation
    tasks = session.games[split].tasks
    have = {(row["task_id"], row["branch"]) for row in earlier}
    plans = [
        GroupPlan(task, f"evaluation-{update}-{split}-{number}-{repeat}", (repeat,))
        for repeat in range(settings.repeats)
        for number, task in enumerate(tasks)
        if (task.task_id, repeat) not in have
    ]
    sampling = Sampling("evaluation", update, settings.seed, settings.temperature, settings.top_p)
    writer = _Writer(session, Context("evaluation", update, settings.seed, _reward(session)))
    with session.console.bar(f"evaluating {split}", len(plans)) as bar:
        await session.collector.collect(
            plans, sampling, on_finished=lambda trajectory: bar.advance(), on_group=writer.add
        )
    seconds = time.monotonic() - started
    return _summarise(session, update, tasks, [*earlier, *writer.episodes], seconds)


class _Writer:
    """Puts each finished episode into the tables."""

    def __init__(self, session: Session, context: Context) -> None:
        self._session = session
        self._context = context
        self.episodes: list[Row] = []

    def add(self, group: TrajectoryGroup) -> None:
        for trajectory in group.trajectories:
            self._add(trajectory)
        self._session.check_budget()

    def _add(self, trajectory: Trajectory) -> None:
        session, context = self._session, self._context
        signal = None
        if not trajectory.failed:
            signal = signal_of(trajectory, session.parts.reward, session.experiment.rollout)
        session.folder.append("steps", step_rows(trajectory, context, signal))
        if session.experiment.save.trajectories in ("all", "evaluation"):
            session.folder.append_trajectories(
                [
                    trajectory_row(
                        trajectory,
                        phase=context.phase,
                        update=context.update,
                        messages=session.transcript(trajectory),
                        signal=signal,
                    )
                ]
            )
        row = episode_row(trajectory, context, signal)
        # Last, so that an episode in the table has all its other rows.
        session.folder.append("episodes", [row])
        self.episodes.append(row)


def _summarise(
    session: Session, update: int, tasks: Sequence[Task], episodes: Sequence[Row], seconds: float
) -> list[Row]:
    kinds = sorted({task.task_type for task in tasks})
    settings = session.experiment.evaluation
    rows = []
    for kind in ("all", *kinds):
        panel = [task for task in tasks if kind in ("all", task.task_type)]
        played = [row for row in episodes if kind in ("all", row["task_type"])]
        tokens = {
            name: sum(row[name] for row in played)
            for name in ("tokens_prefill", "tokens_cached", "tokens_sampled")
        }
        usage = Usage(tokens["tokens_prefill"], tokens["tokens_cached"], tokens["tokens_sampled"])
        rows.append(
            {
                "update": update,
                "split": panel[0].split,
                "task_type": kind,
                **_rates(played, settings.repeats),
                **tokens,
                "cost": session.cost(usage),
                "panel_hash": panel_hash((task.task_id, task.digest) for task in panel),
                "model": session.model(),
                "repeats": settings.repeats,
                "temperature": settings.temperature,
                "seconds": seconds,
            }
        )
    return rows


def _rates(played: Sequence[Row], repeats: int) -> Row:
    alive = [row for row in played if row["error"] is None]
    won = sum(row["won"] for row in alive)
    low, high = wilson(won, len(alive)) if alive else (None, None)
    steps = sum(row["steps"] for row in alive)
    malformed = sum(row["malformed"] for row in alive)
    cut = sum(row["cut"] for row in alive)
    invalid = sum(row["invalid_actions"] for row in alive)
    return {
        "n": len(alive),
        "won": won,
        "errors": len(played) - len(alive),
        "success": share(won, len(alive)),
        "low": low,
        "high": high,
        "pass_at_k": _pass_at_k(alive, repeats),
        "reward_mean": mean([row["return"] for row in alive]),
        "steps_mean": share(steps, len(alive)),
        "truncated_rate": share(sum(row["stop_reason"] in TRUNCATED for row in alive), len(alive)),
        "format_rate": share(steps - malformed - cut, steps),
        "admissible_rate": share(steps - invalid - cut, steps),
        "invalid_actions": invalid,
    }


def _pass_at_k(alive: Sequence[Row], repeats: int) -> float | None:
    """Over the games that have all their repeats."""
    won: dict[str, list[bool]] = {}
    for row in alive:
        won.setdefault(row["task_id"], []).append(row["won"])
    full = [results for results in won.values() if len(results) == repeats]
    return mean([pass_at_k(repeats, sum(results), repeats) for results in full])


def _reward(session: Session) -> str:
    return str(session.experiment.reward["name"])
