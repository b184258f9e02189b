"""What is changed in TextWorld within a worker: speed where it is exact, and no `eval`.

One change also serves Python 3.13, where writing to `locals()` no longer binds names.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from agentic_rl.env.engine.errors import UnsafeGame
from agentic_rl.env.engine.expressions import TextExpression


def install(*, plain: bool = False) -> None:
    """Patches the imported TextWorld, once a process; `plain` changes nothing but `eval`."""
    _safe_expressions()
    if plain:
        return
    _remembered_translations()
    _remembered_texts()
    _shallow_contexts()


def _safe_expressions() -> None:
    """`{r.name}` is interpreted by our own reader; TextWorld would give it to `eval`."""
    from textworld.envs.pddl import textgen

    read = lru_cache(maxsize=4096)(TextExpression)

    def derive(symbol: Any, context: Any = None) -> list[Any]:
        expression = read(symbol.expression)
        objects = (context or symbol.context)["variables"]
        for name in expression.names:
            if name not in objects:
                raise UnsafeGame(f"{{{symbol.expression}}} asks for no object at hand")
        return [textgen.TerminalSymbol(expression(objects))]

    textgen.EvalSymbol.derive = derive


def _remembered_translations() -> None:
    """`load` and `reset` translate one problem four times, twice of it only for planning."""
    import fast_downward

    original = fast_downward.pddl2sas

    @lru_cache(maxsize=8)
    def translated(domain: str, problem: str) -> Any:
        return original(domain, problem)

    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        del verbose, optimize  # no planner is asked, so its own translation is not needed
        return translated(domain, problem)

    fast_downward.pddl2sas = pddl2sas


def _remembered_texts() -> None:
    """Grammars, right-hand sides and queries are parsed once; what is given out is a copy."""
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    parse_grammar = lru_cache(maxsize=16)(logic._parse_and_convert)

    def grammar(text: str, rule_name: str) -> Any:
        return parse_grammar(text, rule_name=rule_name)

    parse_symbols = lru_cache(maxsize=8192)(_without_trace(textgen._parse_and_convert))

    def symbols(text: str, rule_name: str, trace: bool = False) -> list[Any]:
        del trace
        return [_copied(symbol) for symbol in parse_symbols(text, rule_name)]

    parse_query = lru_cache(maxsize=8192)(Rule.parse_conjunctive_query)
    logic._parse_and_convert = grammar
    textgen._parse_and_convert = symbols
    Rule.parse_conjunctive_query = parse_query


def _without_trace(parse: Callable[..., Any]) -> Callable[[str, str], Any]:
    return lambda text, rule_name: parse(text, rule_name=rule_name)


def _shallow_contexts() -> None:
    """Contexts hold objects that nothing changes, so that their mappings are copied, not these."""
    from textworld.envs.pddl import textgen

    def copy_context(context: Any) -> Any:
        return {
            **context,
            "variables": dict(context["variables"]),
            "mapping": dict(context["mapping"]),
        }

    def copy(symbol: Any, context: Any) -> Any:
        copied = _copied(symbol)
        copied.context = copy_context(context)
        return copied

    def replace(grammar: Any, start: Any) -> list[Any]:
        rules = grammar._rules.get(str(start))
        if not rules:
            raise textgen.CSGUnknownSymbolError(start)
        for rule in rules:
            if not rule.condition or _matches(rule.condition, start.context):
                return [copy(symbol, start.context) for symbol in rule.rhs]
        raise IndexError("no applicable rule")

    textgen.copy_context = copy_context
    textgen.Symbol.copy = copy
    textgen.ContextSensitiveGrammar.replace = replace


def _matches(condition: str, context: Any) -> bool:
    from textworld.logic import Rule

    query = Rule.parse_conjunctive_query(condition)
    found = context["state"].all_assignments(query, context["mapping"])
    return next(iter(found), None) is not None


def _copied(symbol: Any) -> Any:
    """A symbol of its own, with inner symbols of its own; contexts are set when it is used."""
    copied = object.__new__(type(symbol))
    copied.__dict__.update(symbol.__dict__)
    for name in ("symbol", "expression"):
        inner = getattr(symbol, name, None)
        if hasattr(inner, "context"):
            setattr(copied, name, _copied(inner))
    return copied
