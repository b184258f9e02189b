"""Which steps a penalty falls on."""

from collections.abc import Sequence

from agentic_rl.errors import ConfigError, did_you_mean
from agentic_rl.types import Step

OFFENCES = ("malformed", "inadmissible", "cut")
"""No action could be read; the environment refused it; the reply was cut by its length."""


def checked(counts: Sequence[str]) -> tuple[str, ...]:
    """The kinds as a tuple; ConfigError for one that no step has."""
    for kind in counts:
        if kind not in OFFENCES:
            near = did_you_mean(kind, OFFENCES)
            raise ConfigError(f"counts: '{kind}' is not one of {', '.join(OFFENCES)}.{near}")
    return tuple(counts)


def offends(step: Step, counts: Sequence[str]) -> bool:
    """Whether any of the kinds applies; a step offends once, however many do."""
    return any(getattr(step, kind) for kind in counts)
