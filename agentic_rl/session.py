"""What train and evaluate share: one open run with its parts, its folder and its console."""

import shlex
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from agentic_rl.config import Experiment
from agentic_rl.console import Console
from agentic_rl.parts import Parts
from agentic_rl.results import RunFolder
from agentic_rl.rollout import Collector
from agentic_rl.tabulate import cost
from agentic_rl.training import Usage
from agentic_rl.types import GameSet, Message, Trajectory


class BudgetReached(Exception):
    """What comes next would pass the budget; the run ends resumable."""


@dataclass
class Session:
    """An open run. `spent` is what earlier processes of the same run have used.

    `learning` is true while an update is being learned and written.
    """

    experiment: Experiment
    parts: Parts
    folder: RunFolder
    console: Console
    games: dict[str, GameSet]
    spent: Usage = field(default_factory=Usage)
    learning: bool = False

    @cached_property
    def collector(self) -> Collector:
        """Built after the backend has started: it needs its tokenizer."""
        parts = self.parts
        return Collector(
            parts.env,
            parts.protocol,
            parts.backend,
            self.experiment.rollout,
            say=self.console.warn,
        )

    @property
    def usage(self) -> Usage:
        return self.spent + self.parts.backend.usage

    @property
    def place(self) -> Path:
        """The run folder as a person would type it: relative where it lies below this one."""
        folder, here = self.folder.path.absolute(), Path.cwd()
        return folder.relative_to(here) if folder.is_relative_to(here) else folder

    @property
    def typed(self) -> str:
        """`place` as the shell takes it."""
        return shlex.quote(str(self.place))

    def cost(self, usage: Usage) -> float | None:
        return cost(usage, self.experiment.backend.get("prices"))

    def check_budget(self, ahead: Usage | None = None) -> None:
        """BudgetReached where what is used, with `ahead` on top, passes the budget."""
        budget = self.experiment.budget
        after = self.usage + (ahead or Usage())
        tokens = after.prefill + after.sampled + after.trained
        if budget.max_tokens is not None and tokens > budget.max_tokens:
            raise BudgetReached(f"budget.max_tokens={budget.max_tokens} would be passed")
        cost = self.cost(after)
        if budget.max_cost is not None and cost is not None and cost > budget.max_cost:
            raise BudgetReached(f"budget.max_cost={budget.max_cost} would be passed")

    def transcript(self, trajectory: Trajectory) -> list[Message]:
        """The whole conversation of a trajectory, each reply followed by its feedback."""
        if not trajectory.steps:
            return []
        protocol = self.parts.protocol
        first = trajectory.steps[0]
        messages = protocol.opening(trajectory.task, first.observation, first.admissible_actions)
        for number, step in enumerate(trajectory.steps, 1):
            messages.append(Message("assistant", step.completion.text))
            messages.append(protocol.reply(step, number))
        return messages

    def model(self) -> str:
        """How tables name the policy."""
        backend: dict[str, Any] = self.experiment.backend
        return str(backend.get("model") or backend["name"])
