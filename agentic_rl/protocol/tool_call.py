"""One tool, `alfworld_step(action)`, and the full history of calls and results."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rl.errors import ConfigError, did_you_mean
from agentic_rl.protocol import protocols
from agentic_rl.protocol.wording import first_observation, listed, pairs, task_sentence
from agentic_rl.types import EnvStep, Message, ParsedAction, Step, Task, View

TOOL = "alfworld_step"
_BODIES = ("xml", "json")
_FORMS = (
    "look; inventory; go to RECEPTACLE; open RECEPTACLE; close RECEPTACLE;"
    " take OBJECT from RECEPTACLE; move OBJECT to RECEPTACLE; examine THING; use OBJECT;"
    " heat OBJECT with RECEPTACLE; clean OBJECT with RECEPTACLE; cool OBJECT with RECEPTACLE;"
    " slice OBJECT with OBJECT"
)
_SYSTEM = (
    "You are an agent in a text-only household. Reach the goal by acting one step at a time."
    f" In every turn call the tool {TOOL} exactly once, with one of the available actions."
)
_SCHEMA: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": TOOL,
        "description": (
            f"Do one action in the household and see what happens. Forms of an action: {_FORMS}."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "description": "One available action, copied exactly.",
                }
            },
            "required": ["action"],
        },
    },
}

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_XML = re.compile(
    rf"\s*<function={TOOL}>\s*<parameter=action>((?:(?!</?parameter).)*)</parameter>"
    r"\s*</function>\s*",
    re.DOTALL,
)


@protocols.register("tool_call")
@dataclass(frozen=True)
class ToolCall:
    """The agent calls `alfworld_step(action)`; each result is a tool message. Full history.

    A reply must hold exactly one call, in an XML or a JSON body, with one argument; anything else
    is malformed. White space around the action is no part of it.
    """

    body: str = "xml"
    system: str = _SYSTEM
    template_options: dict[str, Any] = field(default_factory=lambda: {"enable_thinking": False})

    def __post_init__(self) -> None:
        if self.body not in _BODIES:
            near = did_you_mean(self.body, _BODIES)
            raise ConfigError(
                f"protocol.body={self.body} is not one of {', '.join(_BODIES)}.{near}"
            )

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        return (_SCHEMA,)

    @property
    def keeps_full_history(self) -> bool:
        return True

    def opening(self, task: Task, observation: str, admissible: Sequence[str]) -> list[Message]:
        text = "\n".join(
            (
                f"Task: {task_sentence(observation)}",
                "Current step: 1",
                f"Current observation:\n{observation.strip()}",
                _action_list(admissible),
                f"Choose the next action by calling {TOOL} exactly once.",
            )
        )
        system = [Message("system", self.system)] if self.system else []
        return [*system, Message("user", text)]

    def reply(self, step: Step, number: int) -> Message:
        result = step.result
        lines = [
            f"ALFWorld step {number} result: {_status(step)}",
            f"Current observation:\n{result.observation.strip()}",
        ]
        if not result.done:
            lines.append(_action_list(result.admissible_actions))
        return Message("tool", "\n".join(lines))

    def window(
        self, task: Task, steps: Sequence[Step], observation: str, admissible: Sequence[str]
    ) -> list[Message]:
        """The whole history, for chat templates that rewrite it and so must be rendered whole."""
        start = steps[0] if steps else None
        messages = self.opening(
            task,
            start.observation if start else observation,
            start.admissible_actions if start else admissible,
        )
        for number, step in enumerate(steps, 1):
            messages.append(Message("assistant", step.completion.text))
            messages.append(self.reply(step, number))
        return messages

    def view(
        self, task: Task, steps: Sequence[Step], observation: str, admissible: Sequence[str]
    ) -> View:
        sentence = task_sentence(first_observation(steps, observation))
        return View(sentence, pairs(steps), observation.strip(), listed(admissible))

    def parse(self, text: str) -> ParsedAction:
        calls = _CALL.findall(text)
        if len(calls) != 1:
            return ParsedAction(None, f"{len(calls)} tool calls instead of one")
        action = _from_xml(calls[0]) or _from_json(calls[0])
        return ParsedAction(action) if action else ParsedAction(None, f"no call of {TOOL}(action)")

    def render(self, action: str, reasoning: str = "") -> str:
        if self.body == "xml" and "<" not in action:
            call = f"<function={TOOL}>\n<parameter=action>\n{action}\n</parameter>\n</function>"
        else:
            call = json.dumps({"name": TOOL, "arguments": {"action": action}}, ensure_ascii=False)
            # No tag inside the action can end the call; an XML body has no such escape.
            call = call.replace("<", "\\u003c")
        text = f"<tool_call>\n{call}\n</tool_call>"
        return f"{reasoning}\n\n{text}" if reasoning else text


def _action_list(admissible: Sequence[str]) -> str:
    return "\n".join(
        ("Available actions (copy one exactly):", *(f"- {action}" for action in listed(admissible)))
    )


def _status(step: Step) -> str:
    result: EnvStep = step.result
    if result.won:
        return "Task completed successfully."
    if result.done:
        return "Episode ended without success."
    if step.action is None:
        return "Invalid tool-call format; the environment state did not advance."
    if not result.admissible:
        return "The action was not admissible; choose an available action."
    return "Action executed."


def _from_xml(body: str) -> str | None:
    match = _XML.fullmatch(body)
    return match.group(1).strip() if match else None


def _from_json(body: str) -> str | None:
    call = _loaded(body)
    if not isinstance(call, dict) or call.get("name") != TOOL:
        return None
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        # Some chat templates hand the arguments over as a string of JSON.
        arguments = _loaded(arguments)
    if not isinstance(arguments, dict) or list(arguments) != ["action"]:
        return None
    action = arguments["action"]
    return action.strip() if isinstance(action, str) else None


def _loaded(text: str) -> object:
    """None for what is no JSON, or nested so deeply that it cannot be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
