"""Worked examples for `explain`: one small group of trajectories, a few ratios, a few replies."""

import math
from collections.abc import Mapping
from typing import Any

from agentic_rl.commands._tables import Cells
from agentic_rl.interfaces import Advantage, Loss, PromptProtocol, Reward
from agentic_rl.types import (
    Completion,
    EnvStep,
    ScoredGroup,
    StateFacts,
    Step,
    StopReason,
    Task,
    Trajectory,
    TrajectoryGroup,
)

_TASK = Task("example", "train", "pick_and_place_simple", "", "")
_MARKS = {"!": "malformed", "?": "inadmissible", "~": "cut"}
_BRANCHES = {"A": "a b c", "B": "a b! d", "C": "a c e", "D": "a b c? c~"}
_WON = "AC"
_EVIDENCE = ((0.4, -0.2, 0.8), (0.1, -0.6, -0.3), (0.2, 0.5, 0.6), (0.3, 0.0, -0.2, -0.5))
_RATIOS = (0.5, 0.8, 1.0, 1.2, 2.0, 5.0)
_OLD = 0.1


def reward_table(rewards: Mapping[str, Reward]) -> Cells:
    """What each step of the example earns and loses."""
    head = ["step", "state", "note"]
    for label in rewards:
        head += [f"{label}: task", "penalty"]
    group = _group()
    rows = _steps(group)
    for reward in rewards.values():
        signals = [reward(trajectory) for trajectory in group.trajectories]
        pairs = [
            pair for signal in signals for pair in zip(signal.task, signal.penalties, strict=True)
        ]
        rows = [[*row, *map(_number, pair)] for row, pair in zip(rows, pairs, strict=True)]
    notes = [_story()]
    for label, reward in rewards.items():
        totals = [
            f"{name} {_number(reward(trajectory).total)}"
            for name, trajectory in zip(_BRANCHES, group.trajectories, strict=True)
        ]
        notes.append(f"Returns under {label}: {', '.join(totals)}.")
    return Cells(head, rows, frozenset(head[3:]), notes)


def advantage_table(estimators: Mapping[str, Advantage], reward: Reward, named: str) -> Cells:
    """What each step of the example is credited with."""
    group = _group()
    signals = tuple(reward(trajectory) for trajectory in group.trajectories)
    scored = ScoredGroup(group, signals, len(signals), _EVIDENCE)
    head = ["step", "state", "note", *estimators]
    rows = _steps(group)
    for estimator in estimators.values():
        values = [value for steps in estimator([scored])[0] for value in steps]
        rows = [[*row, _number(value)] for row, value in zip(rows, values, strict=True)]
    notes = [_story(), f"The reward is {named}."]
    if any("score" in estimator.needs for estimator in estimators.values()):
        evidence = (f"{name} {values}" for name, values in zip(_BRANCHES, _EVIDENCE, strict=True))
        notes.append(f"Evidence by turn: {', '.join(evidence)}.")
    return Cells(head, rows, frozenset(estimators), notes)


def loss_table(losses: Mapping[str, Loss]) -> Cells:
    """Loss and derivative of one token, by how much likelier it has become."""
    import numpy as np

    head = ["ratio", "advantage"]
    for label in losses:
        head += [f"{label}: loss", "d/dlogp", "clipped"]
    ratios = np.array([ratio for ratio in _RATIOS for _ in (1, -1)])
    advantages = np.array([1.0, -1.0] * len(_RATIOS))
    old = np.full(len(ratios), math.log(_OLD))
    results = [
        loss.value_and_grad(old + np.log(ratios), old, advantages) for loss in losses.values()
    ]
    rows = []
    for i, ratio in enumerate(ratios):
        row = [f"{ratio:g}", f"{advantages[i]:+g}"]
        for result in results:
            clipped = "yes" if result.clipped[i] else ""
            row += [_number(result.values[i]), _number(result.grads[i]), clipped]
        rows.append(row)
    notes = [f"One token that had probability {_OLD} when it was sampled."]
    notes += [f"A service knows {label} as {loss.remote()}." for label, loss in losses.items()]
    return Cells(head, rows, frozenset(head) - {"clipped"}, notes)


def protocol_table(protocols: Mapping[str, PromptProtocol]) -> Cells:
    """How each protocol reads the same replies."""
    replies = {"no markup": "go to shelf 1", "nothing at all": ""}
    for label, protocol in protocols.items():
        said = protocol.render("go to shelf 1", "The mug may be on a shelf.")
        replies[f"as {label} writes it"] = said
        replies[f"the same, cut short by {label}"] = said[: len(said) * 2 // 3]
    rows = [
        [name, *(_read(protocol, text) for protocol in protocols.values())]
        for name, text in replies.items()
    ]
    return Cells(["reply", *protocols], rows, frozenset(), [])


def protocol_messages(protocol: PromptProtocol) -> list[tuple[str, str]]:
    """(role, text) of a game's second turn."""
    first = "You are in the middle of a room.\n\nYour task is to: put a mug in shelf."
    actions = ("go to shelf 1", "look")
    answer = EnvStep("On the shelf 1, you see nothing.", ("look", "take mug 1 from shelf 1"))
    said = protocol.render("go to shelf 1", "The mug may be on a shelf.")
    done = Step(
        observation=first,
        admissible_actions=actions,
        state=None,
        completion=Completion((), (), said, "stop"),
        action="go to shelf 1",
        malformed=False,
        cut=False,
        result=answer,
    )
    if protocol.keeps_full_history:
        messages = [*protocol.opening(_TASK, first, actions)]
        told = [(message.role, message.content) for message in messages]
        reply = protocol.reply(done, 1)
        return [*told, ("assistant", said), (reply.role, reply.content)]
    window = protocol.window(_TASK, [done], answer.observation, answer.admissible_actions)
    return [(message.role, message.content) for message in window]


def _read(protocol: PromptProtocol, text: str) -> str:
    parsed = protocol.parse(text)
    return f"none: {parsed.problem}" if parsed.action is None else parsed.action


def _story() -> str:
    names = " and ".join(_WON)
    return f"Four branches of one game; {names} win on their last step. Equal letters, equal text."


def _number(value: Any) -> str:
    return f"{float(value) + 0.0:.4f}"


def _steps(group: TrajectoryGroup) -> list[list[str]]:
    rows = []
    for name, trajectory in zip(_BRANCHES, group.trajectories, strict=True):
        for number, word in enumerate(_BRANCHES[name].split()):
            last = trajectory.won and number == len(trajectory.steps) - 1
            note = "wins" if last else _MARKS.get(word[1:], "")
            rows.append([f"{name}{number}", word[0], note])
    return rows


def _group() -> TrajectoryGroup:
    members = tuple(
        Trajectory(
            task=_TASK,
            group_id="example",
            branch=branch,
            steps=tuple(_step(word) for word in words.split()),
            segments=(),
            won=name in _WON,
            stop_reason=StopReason.WON if name in _WON else StopReason.MAX_STEPS,
        )
        for branch, (name, words) in enumerate(_BRANCHES.items())
    )
    return TrajectoryGroup(_TASK, members)


def _step(word: str) -> Step:
    """A letter is a state, a mark behind it what is wrong with the reply."""
    state, kind = word[0], _MARKS.get(word[1:], "")
    # Where the reply was cut something is held: a finer key tells that state from its twin.
    held = ("mug 1",) if kind == "cut" else ()
    return Step(
        observation=state,
        admissible_actions=(),
        state=StateFacts(f"{state}{len(held)}", held, state),
        completion=Completion((0,), (0.0,), "", "length" if kind == "cut" else "stop"),
        action=None if kind in ("malformed", "cut") else "look",
        malformed=kind == "malformed",
        cut=kind == "cut",
        result=EnvStep(state, (), admissible=kind == ""),
    )
