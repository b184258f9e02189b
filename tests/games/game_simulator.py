"""ALFWorld's rules in a few lines: what a walkthrough may do, and when a game is won."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from agentic_rl.games.index import GAME_FILE, TRAJ_FILE

_TREATED = {"clean": "isclean", "heat": "ishot", "cool": "iscool"}
_STATION = {"clean": "sinkbasintype", "heat": "microwavetype", "cool": "fridgetype"}
_AFFORDS = {"clean": "cleanable", "heat": "heatable", "cool": "coolable"}


class Simulator:
    """One game from its two files. `step` asserts that the command is one the game accepts."""

    def __init__(self, trial: Path) -> None:
        game = json.loads((trial / GAME_FILE).read_bytes())
        self.walkthrough: list[str] = game["walkthrough"]
        self.traj = json.loads((trial / TRAJ_FILE).read_bytes())
        text = game["pddl_problem"].lower().split("(:goal")[0]
        self.facts: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for name, rest in re.findall(r"\((\w+)((?: +[^\s()]+)*)\s*\)", text.split("(:init")[1]):
            self.facts[name].add(tuple(rest.split()))
        ids = re.findall(r"^\s*(\S+) - (?:object|receptacle)$", text, re.MULTILINE)
        self.called = dict(_names(sorted(ids)))
        self.kind = {
            **dict(self.facts["objecttype"]),
            **dict(self.facts["receptacletype"]),
        }
        self.place = dict(self.facts["receptacleatlocation"])
        ((_, self.at),) = self.facts["atlocation"]
        self.held: str | None = None
        self.opened: set[str] = set()

    def inside(self, thing: str) -> list[str]:
        return [where for what, where in self.facts["inreceptacle"] if what == thing]

    def step(self, command: str) -> None:
        words = command.split()
        verb = words[0]
        if verb == "go":
            place = self.place[self.called[" ".join(words[2:])]]
            assert place != self.at, f"{command}: there already"
            self.at = place
        elif verb == "open":
            self._open(self.called[" ".join(words[1:])])
        elif verb == "use":
            self._use(self.called[" ".join(words[1:])])
        else:
            assert words[3] == {"take": "from", "move": "to"}.get(verb, "with"), command
            self._handle(verb, self.called[" ".join(words[1:3])], self.called[" ".join(words[4:6])])

    def won(self) -> bool:
        task, params = self.traj["task_type"], self.traj["pddl_params"]
        wanted = f"{params['object_target']}type".lower()
        if task == "look_at_obj_in_light":
            return self.held is not None and self.kind[self.held] == wanted and self._lit()
        state = next((fact for verb, fact in _TREATED.items() if f"_{verb}_" in task), None)
        place = f"{params['parent_target']}type".lower()
        counts = Counter(
            where
            for what, where in self.facts["inreceptacle"]
            if self.kind[where] == place
            and self.kind[what] == wanted
            and (state is None or (what,) in self.facts[state])
        )
        return any(count >= (2 if "two" in task else 1) for count in counts.values())

    def _open(self, place: str) -> None:
        assert (place,) in self.facts["openable"] and place not in self.opened
        assert self.place[place] == self.at
        self.opened.add(place)

    def _use(self, thing: str) -> None:
        assert (thing,) in self.facts["toggleable"]
        assert any(self.place[where] == self.at for where in self.inside(thing))
        self.facts["istoggled"].add((thing,))

    def _handle(self, verb: str, thing: str, place: str) -> None:
        assert self.place[place] == self.at
        if verb in ("take", "move"):
            assert (place,) not in self.facts["openable"] or place in self.opened
        if verb == "take":
            assert self.held is None and (thing,) in self.facts["pickupable"]
            self.facts["inreceptacle"].remove((thing, place))
            self.held = thing
            return
        assert self.held == thing
        if verb == "move":
            assert (self.kind[place], self.kind[thing]) in self.facts["cancontain"]
            self.facts["inreceptacle"].add((thing, place))
            self.held = None
        else:
            assert self.kind[place] == _STATION[verb]
            assert (thing,) in self.facts[_AFFORDS[verb]]
            self.facts[_TREATED[verb]].add((thing,))
            for other in {"heat": ["iscool"], "cool": ["ishot"]}.get(verb, []):
                self.facts[other].discard((thing,))

    def _lit(self) -> bool:
        lamps = [
            thing for (thing,) in self.facts["istoggled"] if self.kind[thing] == "desklamptype"
        ]
        return any(self.place[where] == self.at for lamp in lamps for where in self.inside(lamp))


def replay(trial: Path) -> None:
    """The walkthrough is accepted at every step and wins with its last command, not before."""
    game = Simulator(trial)
    for command in game.walkthrough:
        assert not game.won(), f"{trial}: won before {command!r}"
        game.step(command)
    assert game.won(), f"{trial}: not won at the end"


def _names(ids: list[str]) -> Iterator[tuple[str, str]]:
    kinds: dict[str, list[str]] = defaultdict(list)
    for name in ids:
        kinds[name.split("_bar_")[0] + ("basin" if "basin" in name else "")].append(name)
    for kind, members in kinds.items():
        for position, name in enumerate(members):
            yield f"{kind} {len(members) - position}", name
