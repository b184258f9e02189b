"""What a teacher who was told more thinks of each sampled turn, by `Backend.score`."""

import math
from collections.abc import Sequence
from dataclasses import replace

from agentic_rl.interfaces import Backend
from agentic_rl.types import ScoredGroup, Span, Trajectory


async def gather(groups: Sequence[ScoredGroup], backend: Backend, skill: str) -> list[ScoredGroup]:
    """The groups with evidence[i][t], the turn's sum of log p(teacher) - log p(policy).


    The teacher is the policy itself with `skill` before the first prompt. AgentOPSD,
    arXiv 2608.05987.
    """
    assert backend.tokenizer is not None, "only a backend with tokens can score"
    prefix = tuple(backend.tokenizer.encode(f"{skill}\n\n"))
    found = []
    for number, group in enumerate(groups):
        rows = [
            await _evidence(trajectory, number, backend, prefix)
            for trajectory in group.group.trajectories
        ]
        found.append(replace(group, evidence=tuple(rows)))
    return found


async def _evidence(
    trajectory: Trajectory, group: int, backend: Backend, prefix: tuple[int, ...]
) -> tuple[float, ...]:
    evidence: list[float] = [0.0] * len(trajectory.steps)
    for number, tokens in enumerate(trajectory.segments):
        here = [
            (index, step) for index, step in enumerate(trajectory.steps) if step.segment == number
        ]
        spans = [
            Span(
                step.prompt_end + len(prefix),
                step.completion_end + len(prefix),
                step.completion.sample_id,
                group,
                trajectory.branch,
                index,
            )
            for index, step in here
        ]
        scores = await backend.score(prefix + tokens, spans)
        for (index, step), teacher in zip(here, scores, strict=True):
            student = step.completion.logprobs
            evidence[index] = math.fsum([*teacher, *(-value for value in student)])
    return tuple(evidence)
