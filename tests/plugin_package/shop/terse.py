"""A protocol built on ours: tool calls in JSON, without a system message."""

from dataclasses import dataclass

from agentic_rl.protocol.tool_call import ToolCall


@dataclass(frozen=True)
class TerseToolCall(ToolCall):
    """Our `tool_call`, with no system message and JSON bodies."""

    body: str = "json"
    system: str = ""
