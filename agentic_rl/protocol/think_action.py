"""Reasoning in `<think>`, the action in `<action>`, and a window of the last steps."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rl.errors import ConfigError
from agentic_rl.protocol import protocols
from agentic_rl.protocol.wording import first_observation, listed, task_sentence
from agentic_rl.types import Message, ParsedAction, Step, Task, View

_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)
_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_REQUEST = (
    "It is your turn to act. First reason step by step about where things stand, inside"
    " <think> </think> tags. Then choose one of the admissible actions and write it inside"
    " <action> </action> tags."
)


@protocols.register("think_action")
@dataclass(frozen=True)
class ThinkAction:
    """Each turn is one user message showing the last `history_length` (observation, action) pairs.

    Malformed: a `<think>` or an `<action>` pair of tags is missing, or the reply holds characters
    U+4E00-9FFF. The tags and the rule are those of the verl-agent recipes for GiGPO and HGPO.
    """

    history_length: int = 2
    template_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.history_length < 0:
            raise ConfigError(f"protocol.history_length={self.history_length} is below 0")

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        return ()

    @property
    def keeps_full_history(self) -> bool:
        return False

    def opening(self, task: Task, observation: str, admissible: Sequence[str]) -> list[Message]:
        return self.window(task, (), observation, admissible)

    def reply(self, step: Step, number: int) -> Message:
        """What the environment answered; the next window repeats it."""
        return Message("user", self.feedback(step))

    def feedback(self, step: Step) -> str:
        return "Nothing happens." if step.action is None else step.result.observation

    def window(
        self, task: Task, steps: Sequence[Step], observation: str, admissible: Sequence[str]
    ) -> list[Message]:
        view = self.view(task, steps, observation, admissible)
        lines = [
            "You are an expert agent in the ALFRED embodied environment.",
            f"Your task is to: {view.task}",
        ]
        if steps:
            lines += self._history(len(steps), view)
            lines.append(f"You are now at step {len(steps) + 1}.")
        lines.append(f"Your current observation is: {view.observation}")
        actions = "\n".join(f"- {action}" for action in view.actions)
        lines += [f"Your admissible actions are:\n{actions}", _REQUEST]
        return [Message("user", "\n".join(lines))]

    def view(
        self, task: Task, steps: Sequence[Step], observation: str, admissible: Sequence[str]
    ) -> View:
        sentence = task_sentence(first_observation(steps, observation))
        first = max(0, len(steps) - self.history_length)
        shown = tuple(
            (self._seen(steps, index, observation), steps[index].action)
            for index in range(first, len(steps))
        )
        current = self._seen(steps, len(steps), observation)
        return View(sentence, shown, current, listed(admissible))

    def parse(self, text: str) -> ParsedAction:
        if not _THINK.search(text):
            return ParsedAction(None, "no <think> </think>")
        actions = _ACTION.findall(text)
        if not actions or not actions[-1].strip():
            return ParsedAction(None, "no <action> </action>")
        if _CHINESE.search(text):
            return ParsedAction(None, "Chinese characters")
        return ParsedAction(_unescaped(actions[-1].strip()))

    def render(self, action: str, reasoning: str = "") -> str:
        return f"<think>{reasoning}</think>\n<action>{_escaped(action)}</action>"

    def _seen(self, steps: Sequence[Step], index: int, observation: str) -> str:
        """What the agent was shown before step `index`: after a bad reply, only the feedback."""
        if index == 0:
            return first_observation(steps, observation).strip()
        return self.feedback(steps[index - 1]).strip()

    def _history(self, taken: int, view: View) -> list[str]:
        lines = [f"So far you have taken {taken} step(s)."]
        if view.pairs:
            lines.append(f"The last {len(view.pairs)} observations and the actions you took:")
        first = taken - len(view.pairs) + 1
        for number, (observation, action) in enumerate(view.pairs, first):
            shown = "none (invalid reply)" if action is None else action
            lines.append(f"[Observation {number}: '{observation}', Action {number}: '{shown}']")
        return lines


def _escaped(action: str) -> str:
    """No tag inside the action can end it."""
    return action.replace("&", "&amp;").replace("<", "&lt;")


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&amp;", "&")
