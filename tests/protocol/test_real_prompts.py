"""The first message over the real games."""

import asyncio
import statistics
from pathlib import Path

import pytest

from agentic_rl.env.alfworld import AlfworldEnv
from agentic_rl.games.alfworld import ALFWorldGames
from agentic_rl.protocol.tool_call import ToolCall


@pytest.mark.real
def test_the_length_of_the_first_user_message(alfworld_data: Path) -> None:
    tasks = ALFWorldGames(root=str(alfworld_data)).load("valid_seen").tasks

    async def lengths() -> list[int]:
        pool, found = AlfworldEnv(), []
        for task in tasks:
            env = await pool.open(task)
            start = env.last
            opening = ToolCall().opening(task, start.observation, start.admissible_actions)
            found.append(len(opening[-1].content))
            await env.close()
        await pool.close()
        return found

    found = asyncio.run(lengths())
    assert len(found) == 140
    assert (min(found), round(statistics.median(found)), max(found)) == (564, 1079, 2103)
