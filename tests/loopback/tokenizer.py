"""A transformers tokenizer made offline: byte-level BPE and a chat template that keeps history."""

import itertools
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n# Tools{% for tool in tools %}\n{{ tool | tojson }}"
    "{% endfor %}<|im_end|>\n{% endif %}"
    "{% set thought = '' if enable_thinking | default(true) else '<think>\n\n</think>\n\n' %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' %}{{ thought }}{% endif %}"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{{ thought }}{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_VERBS = ("go to", "open", "close", "take", "move", "examine", "use", "heat", "clean", "cool")
_THINGS = [
    "cabinet",
    "drawer",
    "shelf",
    "countertop",
    "fridge",
    "microwave",
    "sinkbasin",
    "desk",
    "bed",
    "sofa",
    "armchair",
    "sidetable",
    "diningtable",
    "coffeetable",
    "garbagecan",
    "toilet",
    "bathtubbasin",
    "handtowelholder",
    "dresser",
    "safe",
    "stoveburner",
    "apple",
    "bread",
    "egg",
    "lettuce",
    "potato",
    "tomato",
    "mug",
    "cup",
    "plate",
    "bowl",
    "pan",
    "pot",
    "knife",
    "fork",
    "spoon",
    "spatula",
    "book",
    "pen",
    "pencil",
    "laptop",
    "cellphone",
    "keychain",
    "creditcard",
    "remotecontrol",
    "pillow",
    "vase",
    "statue",
    "candle",
    "soapbar",
    "spraybottle",
    "toiletpaper",
    "cloth",
    "desklamp",
    "floorlamp",
    "box",
    "key",
    "coin",
]
_PROSE = (
    "You are in the middle of a room. Looking quickly around you, you see a",
    "Your task is to: put a some clean hot cool in look at under the",
    "You arrive at. On the, you see nothing. In it, you see a. The is closed. The is open.",
    "You open the. You close the. You pick up the from the. You move the to the. Nothing happens.",
    "Task: Current step: Current observation:\nAvailable actions (copy one exactly):\n- look\n-",
    "ALFWorld step result: Action executed. Task completed successfully. inventory examine",
    "The action was not admissible; choose an available action.",
    "Invalid tool-call format; the environment state did not advance.",
    "<tool_call>\n<function=alfworld_step>\n<parameter=action>\n</parameter>\n</function>\n"
    "</tool_call>",
    "Choose the next action by calling alfworld_step exactly once.",
)


def build(folder: Path) -> Path:
    """Writes the tokenizer into `folder`, which transformers and ModelScope then load."""
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        min_frequency=1,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator(_corpus(), trainer)
    inner.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = TEMPLATE
    folder.mkdir(parents=True, exist_ok=True)
    fast.save_pretrained(str(folder))
    return folder


def _corpus() -> list[str]:
    lines = [
        f"- {verb} {thing} {1 + n % 9}"
        for n, (verb, thing) in enumerate(itertools.product(_VERBS, _THINGS))
    ]
    return [*_PROSE * 20, *lines]
