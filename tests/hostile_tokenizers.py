"""Small real tokenizers, and chat templates that make life hard."""

import functools

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from agentic_rl.backend.tokenizer import ChatTokenizer

_CORPUS = [
    "go to desk 1\nopen drawer 2\ntake pen 1 from drawer 2\n\nAvailable actions:\n- look\n- go",
    "<function=alfworld_step>\n<parameter=action>\nlook\n</parameter>\n</function>\n</tool_call>",
    "</s>\n</s>\n\nUSER: a\nASSISTANT: b</s>\nTOOL: c\n You arrive at desk 1. On the desk 1, you",
    "ALFWorld step 3 result: Action executed.\nCurrent observation:\nYou open the drawer 2.",
    'ASSISTANT: look</s>\nTOOL: {"name": "x"}</tool_call></s>\n go 1</s>\n ::\n\n\n -- <tool_call>',
] * 4
_SPECIAL = ["<|im_start|>", "<|im_end|>"]


def _bpe(*, regex: bool, special: bool) -> Tokenizer:
    encoder = Tokenizer(models.BPE())
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    encoder.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=_SPECIAL if special else [],
        show_progress=False,
    )
    encoder.train_from_iterator(_CORPUS, trainer)
    return encoder


def _words() -> Tokenizer:
    """One token a word, a run of spaces or a sign; what it does not know is lost."""
    encoder = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    pieces = Regex(r"\w+|\s+|[^\w\s]")
    encoder.pre_tokenizer = pre_tokenizers.Split(pieces, behavior="isolated")
    encoder.decoder = decoders.Fuse()
    trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]"], show_progress=False)
    encoder.train_from_iterator(_CORPUS, trainer)
    encoder.add_special_tokens([AddedToken(token, normalized=False) for token in _SPECIAL])
    return encoder


@functools.cache
def encoder(name: str) -> Tokenizer:
    return {
        "bytes": lambda: _bpe(regex=True, special=True),
        "bytes-no-special": lambda: _bpe(regex=True, special=False),
        "merges-everywhere": lambda: _bpe(regex=False, special=False),
        "merges-special": lambda: _bpe(regex=False, special=True),
        "words": _words,
    }[name]()


ENCODERS = ("bytes", "bytes-no-special", "merges-everywhere", "merges-special", "words")


def _turns(turn: str, more: str = "{{- '<|im_start|>assistant\\n' -}}") -> str:
    """A template of one text a message, written so that no white space is its own."""
    return (
        "{%- if tools -%}{{- 'TOOLS: ' ~ (tools | tojson) ~ '\\n' -}}{%- endif -%}"
        "{%- for m in messages -%}" + turn + "{%- endfor -%}"
        "{%- if add_generation_prompt -%}" + more + "{%- endif -%}"
    )


_CHATML = "{{- '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' -}}"
_PLAIN = "{{- m.role | upper ~ ': ' ~ m.content ~ ('</s>' if m.role == 'assistant') ~ '\\n' -}}"
_DROPS = (
    "{%- set said = m.content.split('</think>')[-1].lstrip('\\n')"
    " if m.role == 'assistant' and not loop.last else m.content -%}"
    "{{- '<|im_start|>' ~ m.role ~ '\\n' ~ said ~ '<|im_end|>\\n' -}}"
)
_LAST_TURN = (
    "{{- '<|im_start|>' ~ m.role ~ ('!' if loop.last) ~ '\\n' ~ m.content ~ '<|im_end|>\\n' -}}"
)
_QWEN_LIKE = (
    "{%- set said = m.content | trim -%}"
    "{%- if m.role == 'assistant' -%}"
    "{%- set thought = '' -%}"
    "{%- if '</think>' in said -%}"
    "{%- set thought = said.split('</think>')[0].split('<think>')[-1] | trim -%}"
    "{%- set said = said.split('</think>')[-1].lstrip('\\n') -%}"
    "{%- endif -%}"
    "{%- set said = '<think>\\n' ~ thought ~ '\\n</think>\\n\\n' ~ said -%}"
    "{%- endif -%}"
    "{{- '<|im_start|>' ~ m.role ~ '\\n' ~ said ~ '<|im_end|>\\n' -}}"
)
_QWEN_MORE = (
    "{{- '<|im_start|>assistant\\n<think>\\n' -}}"
    "{%- if enable_thinking is defined and enable_thinking is false -%}"
    "{{- '\\n</think>\\n\\n' -}}"
    "{%- endif -%}"
)

GROWING = {
    "chatml": _turns(_CHATML),
    "trims": _turns(_CHATML.replace("m.content", "m.content | trim")),
    "default-system": "{%- if messages[0].role != 'system' -%}"
    "{{- '<|im_start|>system\\nYou help.<|im_end|>\\n' -}}{%- endif -%}" + _turns(_CHATML),
    "plain": _turns(_PLAIN, "{{- 'ASSISTANT: ' -}}"),
    "marker-is-the-next-role": _turns(
        "{{- '<|' ~ m.role ~ '|>' ~ m.content -}}", "{{- '<|assistant|>' -}}"
    ),
    "space-before-marker": _turns(_PLAIN.replace("'</s>'", "' </s>'"), "{{- 'ASSISTANT: ' -}}"),
    "qwen-like": _turns(_QWEN_LIKE, _QWEN_MORE),
}
"""Templates that leave history alone."""

REWRITING = {
    "drops-thinking": _turns(_DROPS),
    "depends-on-the-last-turn": _turns(_LAST_TURN),
    "moves-the-tools": "{%- for m in messages -%}"
    "{%- if loop.last and tools -%}{{- tools | tojson -}}{%- endif -%}" + _CHATML + "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}",
    "escapes": _turns(_CHATML.replace("m.content", "m.content | e")),
    "repeats-the-last": _turns(
        _CHATML, "{{- messages[-1].content ~ '<|im_start|>assistant\\n' -}}"
    ),
    "counts": _turns(_CHATML.replace("m.role", "m.role ~ (messages | length)")),
}
"""Templates whose next prompt does not begin with the last one."""


def chat(encoder_name: str, template: str) -> ChatTokenizer:
    return ChatTokenizer(encoder(encoder_name), template)
