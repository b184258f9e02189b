"""`agentic-rl explain advantage=NAME`: a component's formula, its conventions, a worked example."""

import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentic_rl.config import FAMILIES
from agentic_rl.errors import UsageError

if TYPE_CHECKING:
    from agentic_rl.commands._variants import Composer, Variant

HELP = "formula and conventions of a part: agentic-rl explain advantage=gigpo_paper,gigpo_released"
HYDRA = False

EXPLAINED = ("protocol", "reward", "advantage", "loss")
_KNOWS = (
    f"knows {', '.join(EXPLAINED)} and recipes: try"
    " `agentic-rl explain advantage=gigpo_released` or `agentic-rl explain +recipe=debug`"
)
_EXAMPLE_REWARD = "reward=success_penalized_steps"


def main(argv: Sequence[str]) -> int:
    from agentic_rl.commands._arguments import Arguments

    parser = Arguments("explain", HELP)
    parser.add_argument(
        "words",
        nargs="*",
        metavar="key=value",
        help="FAMILY=NAME[,NAME], FAMILY.FIELD=VALUE, +recipe=NAME",
    )
    words = parser.parse_args(argv).words
    named = [family for family in EXPLAINED if any(_about(word, family) for word in words)]
    recipe = any(_about(word, "recipe") for word in words)
    _check(words)
    if not named and not recipe:
        raise UsageError(f"explain {_KNOWS}")
    _explain(words if recipe or "reward" in named else [*words, _EXAMPLE_REWARD], named)
    return 0


def _check(words: Sequence[str]) -> None:
    """Refuses a recipe without its plus sign, and families that have nothing to explain."""
    for word in words:
        key, _, value = word.partition("=")
        if key == "recipe":
            typed = f"agentic-rl explain +recipe={value or 'debug'}"
            raise UsageError(f"a recipe is added with a plus sign: type `{typed}`")
        alone = not any(_about(other, name) for other in words for name in (*EXPLAINED, "recipe"))
        if alone and key.partition(".")[0] in FAMILIES:
            raise UsageError(f"explain has nothing on {key.partition('.')[0]}: it {_KNOWS}")


def _about(word: str, family: str) -> bool:
    key = word.lstrip("+").partition("=")[0]
    return key == family or key.startswith(f"{family}.")


def _explain(words: Sequence[str], named: Sequence[str]) -> None:
    from agentic_rl.commands._variants import Composer

    composer = Composer(words)
    for family in named or EXPLAINED:
        variants = composer.variants(family)
        components = {variant.label: _build(family, variant.spec) for variant in variants}
        described: set[type] = set()
        for variant in variants:
            component = components[variant.label]
            _introduce(family, variant)
            if type(component) not in described:
                _describe(component)
            described.add(type(component))
        _conventions(variants)
        _example(family, components, composer)


def _build(family: str, spec: dict[str, Any]) -> Any:
    from agentic_rl.registry import Registry

    module = import_module(f"agentic_rl.{family}")
    (registry,) = (value for value in vars(module).values() if isinstance(value, Registry))
    return registry.build(spec)


def _introduce(family: str, variant: "Variant") -> None:
    name = variant.spec["name"]
    origin = "" if variant.option == name else f"  (a preset of {name})"
    _say(f"{family}={variant.label}{origin}", "bold")
    for note in variant.notes:
        _say(f"  {note}", "dim")
    print()


def _describe(component: Any) -> None:
    for line in (inspect.getdoc(type(component)) or "").splitlines():
        _say(f"  {line}".rstrip())
    print()


def _conventions(variants: Sequence["Variant"]) -> None:
    """One column a variant; a lone one has room for who set a value, and why."""
    from agentic_rl.commands._tables import Cells, write_text

    fields = list(dict.fromkeys(c.field for v in variants for c in v.conventions))
    if not fields:
        _say("  There is nothing to choose.\n")
        return
    rows = []
    for field in fields:
        found = [next((c for c in v.conventions if c.field == field), None) for v in variants]
        meaning = next(c.meaning for c in found if c)
        if len(found) == 1 and found[0]:
            only = found[0]
            why = f"{only.source}: {only.reason}" if only.reason else only.source
            rows.append([field, only.value, why, meaning])
        else:
            rows.append([field, *(f"{c.value} ({c.source})" if c else "" for c in found), meaning])
    columns = ["value", "set by"] if len(variants) == 1 else [v.label for v in variants]
    write_text(Cells(["convention", *columns, "meaning"], rows, frozenset(), []))


def _example(family: str, components: dict[str, Any], composer: "Composer") -> None:
    from agentic_rl.commands import _worked
    from agentic_rl.commands._tables import write_text

    if family == "advantage":
        reward = composer.variants("reward")[0]
        built = _build("reward", reward.spec)
        write_text(_worked.advantage_table(components, built, reward.label))
    elif family == "reward":
        write_text(_worked.reward_table(components))
    elif family == "loss":
        write_text(_worked.loss_table(components))
    else:
        for label, protocol in components.items():
            _say(f"The second turn of a game under {label}", "bold")
            for role, text in _worked.protocol_messages(protocol):
                _say(f"[{role}]", "cyan")
                _say(text)
            print()
        write_text(_worked.protocol_table(components))
    print()


def _say(text: str, style: str = "") -> None:
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False, soft_wrap=True).print(Text(text, style))
