"""The shipped tokenizer and its chat template, and folders that hold none."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Encoder

from agentic_rl.backend.linear.tokenizer import FOLDER as TOKENIZER
from agentic_rl.backend.linear.tokenizer import LineTokenizer
from agentic_rl.backend.tokenizer import ChatTokenizer
from agentic_rl.env import envs
from agentic_rl.errors import BackendError
from agentic_rl.games import games_sources
from agentic_rl.interfaces import EnvPool
from agentic_rl.protocol.think_action import ThinkAction
from agentic_rl.protocol.tool_call import ToolCall
from agentic_rl.tokens import probe
from agentic_rl.types import EnvStep, Message, Task

SHIPPED = ChatTokenizer.from_folder(TOKENIZER)
BY_LINE = LineTokenizer.from_folder(TOKENIZER)
CHAT = [
    Message("system", "Be brief."),
    Message("user", "Task: put a mug in sink."),
    Message("assistant", "<think>hm</think>\ngo"),
    Message("tool", "Nothing happens."),
]


def render(messages: list[Message], generate: bool = False, **options: object) -> str:
    return SHIPPED.render(messages, ToolCall().tools, generate, options)


@given(st.text())
def test_decoding_gives_back_every_text(text: str) -> None:
    assert SHIPPED.decode(SHIPPED.encode(text)) == text


pieces = st.sampled_from(["<|im_end|>", "<tool_call>", "\n", "\n\n", " ", "- go to ", "\r\n", "a"])


@given(st.lists(pieces | st.text(max_size=5)))
def test_lines_encode_as_the_whole_does(parts: list[str]) -> None:
    text = "".join(parts)
    assert BY_LINE.encode(text) == SHIPPED.encode(text)


def test_the_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in TOKENIZER.iterdir()) < 300_000


def test_markers_are_one_token_each() -> None:
    for marker in ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_response>", "<think>"):
        assert SHIPPED.encode(marker) == [SHIPPED.token_id(marker)]
    with pytest.raises(BackendError, match="no token '<eos>'"):
        SHIPPED.token_id("<eos>")


def test_template_to_the_letter() -> None:
    text = render(CHAT, generate=True)
    schema = json.dumps(ToolCall().tools[0], ensure_ascii=False)
    assert f"Be brief.\n\n# Tools\n\nYou may call these functions:\n<tools>\n{schema}\n" in text
    assert text.endswith(
        "<|im_start|>user\nTask: put a mug in sink.<|im_end|>\n"
        "<|im_start|>assistant\n<think>hm</think>\ngo<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\nNothing happens.\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_template_without_tools_or_system() -> None:
    assert SHIPPED.render(CHAT[1:2], (), False, {}) == (
        "<|im_start|>user\nTask: put a mug in sink.<|im_end|>\n"
    )
    assert SHIPPED.render(CHAT[:1], (), False, {}) == "<|im_start|>system\nBe brief.<|im_end|>\n"


def test_history_is_never_rewritten() -> None:
    for length in range(2, len(CHAT)):
        assert render(CHAT).startswith(render(CHAT[:length]))
    assert probe(SHIPPED, ToolCall()).incremental
    assert not probe(SHIPPED, ThinkAction()).incremental


def test_thinking_options_are_tolerated() -> None:
    assert render(CHAT, enable_thinking=False) == render(CHAT, enable_thinking=True)


def test_a_second_system_message_is_refused() -> None:
    with pytest.raises(BackendError, match="only the first message"):
        render([*CHAT, Message("system", "again")])


def test_a_template_stays_in_its_sandbox(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((TOKENIZER / "tokenizer.json").read_bytes())
    config = {"chat_template": "{{ eos_token }}", "eos_token": {"content": "<e>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert ChatTokenizer.from_folder(tmp_path).render(CHAT, (), False, {}) == "<e>"
    (tmp_path / "chat_template.jinja").write_text("{{ ''.__class__.__mro__ }}")
    with pytest.raises(BackendError, match="chat template"):
        ChatTokenizer.from_folder(tmp_path).render(CHAT, (), False, {})


def test_folders_without_a_tokenizer_are_named(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"holds no tokenizer\.json"):
        ChatTokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BackendError, match="is no tokenizer"):
        ChatTokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes((TOKENIZER / "tokenizer.json").read_bytes())
    with pytest.raises(BackendError, match="holds no chat template"):
        ChatTokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(BackendError, match="is no JSON"):
        ChatTokenizer.from_folder(tmp_path)


def opening(task: Task, pool: EnvPool) -> str:
    """The first prompt of a game."""

    async def start() -> EnvStep:
        env = await pool.open(task)
        first = await env.reset()
        await env.close()
        return first

    first = asyncio.run(start())
    protocol = ToolCall()
    messages = protocol.opening(task, first.observation, first.admissible_actions)
    return SHIPPED.render(messages, protocol.tools, True, {})


@pytest.mark.real
def test_real_games_take_few_tokens(alfworld_data: Path) -> None:
    games = games_sources.build({"name": "alfworld", "root": str(alfworld_data)})
    pool = envs.build({"name": "alfworld"})
    for task in games.load("valid_seen").tasks[::14]:
        text = opening(task, pool)
        assert len(text) / len(SHIPPED.encode(text)) > 3.5
    asyncio.run(pool.close())


@pytest.mark.slow
def test_the_script_makes_such_a_tokenizer(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "train_linear_tokenizer.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    made = Encoder.from_file(str(tmp_path / "tokenizer.json"))
    assert made.get_vocab_size() == SHIPPED.vocabulary_size
    text = "- take mug 1 from desk 1\n<|im_end|>"
    assert made.encode(text).ids == SHIPPED.encode(text)
