"""What both protocols need: the task's sentence, the actions listed, and the pairs shown."""

from collections.abc import Sequence

from agentic_rl.types import Step

_TASK_MARK = "Your task is to: "


def task_sentence(first_observation: str) -> str:
    """The task as the game words it; the whole text where the game names none."""
    _, mark, task = first_observation.partition(_TASK_MARK)
    return task.strip() if mark else first_observation.strip()


def listed(admissible: Sequence[str]) -> tuple[str, ...]:
    """The actions that a prompt lists: lower-case, sorted, each once, without `help`."""
    return tuple(sorted({action.lower() for action in admissible} - {"help"}))


def pairs(steps: Sequence[Step]) -> tuple[tuple[str, str | None], ...]:
    """(observation, action that followed it), oldest first, as a prompt shows them."""
    return tuple((step.observation.strip(), step.action) for step in steps)


def first_observation(steps: Sequence[Step], observation: str) -> str:
    return steps[0].observation if steps else observation
