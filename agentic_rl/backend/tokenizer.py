"""A `tokenizers` tokenizer with its chat template, from a folder as model hubs lay them out."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentic_rl.errors import BackendError
from agentic_rl.types import Message

if TYPE_CHECKING:
    from jinja2 import Template
    from tokenizers import Tokenizer as Encoder


class ChatTokenizer:
    """Renders by a Jinja template in a sandbox, encodes and decodes to the letter.

    `constants` are names that the template may use beside the usual ones, such as `bos_token`.
    """

    def __init__(
        self, encoder: "Encoder", template: str, constants: Mapping[str, str] | None = None
    ) -> None:
        self._encoder = encoder
        self._source = template
        self._constants = dict(constants or {})

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Reads `tokenizer.json` and `chat_template.jinja`, or the template in the config file."""
        from tokenizers import Tokenizer as Encoder

        path = folder / "tokenizer.json"
        if not path.is_file():
            raise BackendError(f"{folder} holds no tokenizer.json")
        try:
            # A plain Exception is all that the library raises for an unreadable file.
            encoder = Encoder.from_file(str(path))
        except Exception as error:
            raise BackendError(f"{path} is no tokenizer: {error}") from error
        config = _config(folder / "tokenizer_config.json")
        return cls(encoder, _template(folder, config), _special_tokens(config))

    @property
    def vocabulary_size(self) -> int:
        return int(self._encoder.get_vocab_size(with_added_tokens=True))

    def token_id(self, token: str) -> int:
        """The id of one token, by its own text; BackendError where there is none."""
        found = self._encoder.token_to_id(token)
        if found is None:
            raise BackendError(f"the tokenizer has no token '{token}'")
        return int(found)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool,
        options: Mapping[str, Any],
    ) -> str:
        from jinja2 import TemplateError

        try:
            return self._template.render(
                messages=[{"role": m.role, "content": m.content} for m in messages],
                tools=list(tools) or None,
                add_generation_prompt=add_generation_prompt,
                **{**self._constants, **options},
            )
        except TemplateError as error:
            raise BackendError(f"the chat template cannot be used: {error}") from error

    def encode(self, text: str) -> list[int]:
        return list(self._encoder.encode(text, add_special_tokens=False).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._encoder.decode(list(tokens), skip_special_tokens=False))

    @cached_property
    def _template(self) -> "Template":
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        return environment.from_string(self._source)


def _to_json(value: Any, indent: int | None = None) -> str:
    """As model hubs render it: neither escaped for HTML nor for ASCII."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> str:
    raise BackendError(f"the chat template refuses the conversation: {message}")


def _config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BackendError(f"{path} is no JSON: {error}") from error
    return config if isinstance(config, dict) else {}


def _template(folder: Path, config: Mapping[str, Any]) -> str:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if not isinstance(template, str):
        raise BackendError(f"{folder} holds no chat template: it needs chat_template.jinja")
    return template


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token` and its like, each written as text or as an object with its content."""
    found = {}
    for name, token in config.items():
        text = token.get("content") if isinstance(token, dict) else token
        if name.endswith("_token") and isinstance(text, str):
            found[name] = text
    return found
