"""Imitates a few walkthroughs before the first update, where the backend's recipe asks for it."""

from collections.abc import Sequence

from agentic_rl.config import Experiment
from agentic_rl.errors import ConfigError, EnvError
from agentic_rl.interfaces import Env
from agentic_rl.parts import Parts, adam
from agentic_rl.session import Session
from agentic_rl.types import Completion, Demonstration, Prompt, Step, Task
from agentic_rl.update import TRAIN, order


async def imitate(session: Session) -> None:
    """Plays the walkthroughs of the first `backend.warm_start` training games, then learns them.

    Raises EnvError where a walkthrough does not win.
    """
    tasks = chosen(session.experiment, session.parts, session.games[TRAIN].tasks)
    if not tasks:
        return
    demonstrations: list[Demonstration] = []
    for task in tasks:
        demonstrations += await _demonstrate(session, task)
    await session.parts.backend.imitate(demonstrations, adam(session.experiment))
    await session.parts.backend.refresh()
    session.console.line(
        f"imitated {len(tasks)} walkthroughs, {len(demonstrations)} turns, before the first update"
    )


def chosen(experiment: Experiment, parts: Parts, tasks: Sequence[Task]) -> list[Task]:
    """The training games to imitate; ConfigError where the backend or a game cannot."""
    count = int(experiment.backend.get("warm_start") or 0)
    if not count:
        return []
    if not parts.backend.capabilities.imitate:
        raise ConfigError("this backend cannot imitate: set backend.warm_start=0")
    found = _spread(order(tasks, experiment.seed), count)
    for task in found:
        if not task.walkthrough:
            raise ConfigError(f"{task.task_id} has no walkthrough: set backend.warm_start=0")
    return found


def _spread(tasks: list[Task], count: int) -> list[Task]:
    """The first games of each task type in turn, so that few walkthroughs show every kind."""
    queues: dict[str, list[Task]] = {}
    for task in tasks:
        queues.setdefault(task.task_type, []).append(task)
    rounds = max(len(queue) for queue in queues.values())
    mixed = [
        queues[kind][number]
        for number in range(rounds)
        for kind in sorted(queues)
        if number < len(queues[kind])
    ]
    return mixed[:count]


async def _demonstrate(session: Session, task: Task) -> list[Demonstration]:
    env = await session.parts.env.open(task)
    try:
        await env.reset()
        return await _walk(session, task, env)
    finally:
        await env.close()


async def _walk(session: Session, task: Task, env: Env) -> list[Demonstration]:
    protocol = session.parts.protocol
    steps: list[Step] = []
    found = []
    for action in task.walkthrough:
        before = env.last
        view = protocol.view(task, steps, before.observation, before.admissible_actions)
        prompt = Prompt((), (), protocol.tools, view, task, 0, len(steps))
        found.append(Demonstration(prompt, action))
        result = await env.step(action)
        said = Completion((), (), protocol.render(action), "stop")
        steps.append(
            Step(
                before.observation,
                before.admissible_actions,
                before.state,
                said,
                action,
                False,
                False,
                result,
            )
        )
    if not env.last.won:
        raise EnvError(f"the walkthrough of {task.task_id} does not win its game")
    return found
