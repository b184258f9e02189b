"""The training loop: update, save, evaluate; and what is kept when it ends early."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from agentic_rl import collapse
from agentic_rl.errors import AgenticRLError
from agentic_rl.evaluate import evaluate
from agentic_rl.session import Session
from agentic_rl.tabulate import Row
from agentic_rl.training import Usage
from agentic_rl.update import play_and_learn, tell

_LAST_SAVE = 6.0
"""Seconds that a stopped run may take to save; with closing, it is out within ten."""


async def train(session: Session, start: int) -> None:
    """Updates `start + 1` to `updates`; `start` is the update that the weights have seen.

    Every row of an update is in the tables before its checkpoint is registered, and an evaluation
    comes after it, so that a run cut back to its last checkpoint goes on as if it had never
    stopped. However it ends, what was learned since the last checkpoint is saved where it can be.
    """
    course = _Course(session, done=start, saved=start)
    try:
        await course.run()
    except BaseException:
        await course.keep()
        raise


@dataclass
class _Course:
    """How far a run has come: `done` updates are learned and written, `saved` of them are safe.

    `evaluated` is the update whose evaluation was begun last.
    """

    session: Session
    done: int
    saved: int
    evaluated: int | None = None
    rows: list[Row] = field(default_factory=list)

    async def run(self) -> None:
        experiment, settings = self.session.experiment, self.session.experiment.evaluation
        # A trainer that cannot be had, or a sampler that is not the trainer, shows before any game.
        await self.session.parts.backend.refresh()
        if settings.every and (self._due(settings.every) if self.done else settings.at_start):
            # Where the last process was interrupted in it, only what it lacks is played.
            await self._evaluate(self.session.folder.keep_finished_episodes(self.done))
        last_usage = Usage()
        while self.done < experiment.updates:
            # One that would cost as much as the last one.
            self.session.check_budget(last_usage)
            before = self.session.usage
            await self._update()
            last_usage = self.session.usage - before
            if self._due(experiment.save.every):
                await self._save()
            if settings.every and self._due(settings.every):
                await self._evaluate()

    async def keep(self) -> None:
        """Saves what the last checkpoint lacks, unless the weights are in between two updates."""
        if self.done == self.saved or self.session.learning:
            return
        try:
            await asyncio.wait_for(self._save(), _LAST_SAVE)
        except (AgenticRLError, OSError, TimeoutError) as error:
            reason = str(error) or f"not done within {_LAST_SAVE:g} s"
            self.session.console.warn(f"update {self.done} could not be saved: {reason}")

    async def _update(self) -> None:
        row = await play_and_learn(self.session, self.done + 1)
        self.done += 1
        self.rows.append(row)
        tell(self.session, row)
        if line := collapse.warning(self.rows):
            self.session.console.warn(f"update {self.done}: {line}")

    async def _save(self) -> None:
        """A checkpoint and, last of all, the line that makes it count."""
        session, name = self.session, f"update-{self.done}"
        folder = session.folder.checkpoint_folder(name)
        checkpoint = await session.parts.backend.save(folder, name)
        row = self.rows[-1]
        metrics = {key: value for key, value in row.items() if isinstance(value, int | float)}
        spent = {f"spent_{key}": value for key, value in asdict(session.usage).items()}
        spent["spent_evaluation"] = int(self.evaluated == self.done)
        session.folder.add_checkpoint(checkpoint, self.done, {**metrics, **spent})
        self.saved = self.done

    async def _evaluate(self, earlier: Sequence[Row] = ()) -> None:
        self.evaluated = self.done
        splits = self.session.experiment.evaluation.splits
        rows = await evaluate(self.session, self.done, splits, earlier)
        _report(self.session, self.done, rows)

    def _due(self, every: int) -> bool:
        return self.done == self.session.experiment.updates or bool(
            every and self.done % every == 0
        )


def _report(session: Session, update: int, rows: list[Row]) -> None:
    numbers: dict[str, float] = {}
    for row in rows:
        if row["task_type"] != "all" or row["success"] is None:
            continue
        numbers[f"evaluation/{row['split']}/success"] = row["success"]
        session.console.line(
            f"update {update}: {row['split']} {100 * row['success']:.1f} %"
            f" ({row['won']}/{row['n']}), {row['steps_mean']:.1f} steps,"
            f" {row['invalid_actions']} invalid actions"
        )
    session.parts.tracker.log(numbers, update)
