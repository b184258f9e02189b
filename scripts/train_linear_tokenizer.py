"""Trains the tokenizer of the backend `linear` on generated games, and writes its folder.

python scripts/train_linear_tokenizer.py [FOLDER]

The games, what is played in them and so the file are the same on every machine.
"""

import asyncio
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from agentic_rl.backend.tokenizer import ChatTokenizer
from agentic_rl.env import envs
from agentic_rl.games import games_sources
from agentic_rl.interfaces import EnvPool, PromptProtocol
from agentic_rl.protocol import protocols
from agentic_rl.types import Completion, Message, Step, Task

FOLDER = Path(__file__).parents[1] / "agentic_rl" / "backend" / "linear_tokenizer"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
GAMES = 60
TURNS = 30
VOCABULARY = 2048
LONGEST = 12
"""Characters of the longest token: short enough that a command is a few tokens, not one."""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    template = (FOLDER / "chat_template.jinja").read_text(encoding="utf-8")
    texts = asyncio.run(conversations(template))
    tokenizer = train(texts)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    tokens = sum(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts)
    characters = sum(map(len, texts))
    print(f"{tokenizer.get_vocab_size()} tokens; {characters / tokens:.1f} characters a token")


def train(texts: list[str]) -> Tokenizer:
    """Byte-level BPE; a line is never merged with the next one."""
    tokenizer = Tokenizer(models.BPE())
    lines = pre_tokenizers.Split(Regex(r"[^\n]*\n+|[^\n]+"), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([lines, letters])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=LONGEST,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_pieces(texts), trainer)
    tokenizer.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in TAGS])
    return tokenizer


def _pieces(texts: list[str]) -> Iterator[str]:
    """The text between the added tokens, which no merge may cross."""
    borders = re.compile("|".join(map(re.escape, (*SPECIAL, *TAGS))))
    for text in texts:
        yield from filter(None, borders.split(text))


async def conversations(template: str) -> list[str]:
    """Half-good play in both protocols' wording, rendered whole."""
    with TemporaryDirectory() as cache:
        spec = {"name": "builtin", "train": GAMES, "root": cache}
        tasks = games_sources.build(spec).load("train").tasks
        pool = envs.build({"name": "alfworld"})
        render = ChatTokenizer(Tokenizer(models.BPE()), template).render
        texts = []
        for number, task in enumerate(tasks):
            protocol = protocols.build({"name": "think_action" if number % 6 == 5 else "tool_call"})
            messages = await play(task, pool, protocol, random.Random(f"corpus/{number}"))
            texts.append(render(messages, protocol.tools, False, {}))
        await pool.close()
        return texts


async def play(
    task: Task, pool: EnvPool, protocol: PromptProtocol, rng: random.Random
) -> list[Message]:
    env = await pool.open(task)
    now = await env.reset()
    messages = protocol.opening(task, now.observation, now.admissible_actions)
    plan = list(task.walkthrough)
    for number in range(1, TURNS + 1):
        choices = [action for action in now.admissible_actions if action != "help"]
        action = plan.pop(0) if plan and rng.random() < 0.5 else rng.choice(choices)
        text = protocol.render(action)
        result = await env.step(action)
        reply = Completion((), (), text, "stop")
        step = Step(
            now.observation, now.admissible_actions, None, reply, action, False, False, result
        )
        messages += [Message("assistant", text), protocol.reply(step, number)]
        now = result
        if now.done:
            break
    await env.close()
    return messages


if __name__ == "__main__":
    main()
