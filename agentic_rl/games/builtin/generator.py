"""Makes games: number `index` of a split depends on (seed, difficulty, split, index) alone."""

import json
import random
from dataclasses import dataclass, field
from functools import lru_cache

from agentic_rl.games.builtin.difficulty import DIFFICULTIES, Difficulty
from agentic_rl.games.builtin.furnish import Furnisher, Thing, UnfitError, Wish, trimmed
from agentic_rl.games.builtin.menu import combinations, seen_split
from agentic_rl.games.builtin.naming import names_of
from agentic_rl.games.builtin.problem import Scene, problem_text
from agentic_rl.games.builtin.rooms import (
    GENERATOR_VERSION,
    Location,
    Receptacle,
    Room,
    build_room,
    room_kind,
)
from agentic_rl.games.builtin.shipped import GOAL_PLACEHOLDER, Shipped
from agentic_rl.games.builtin.tables import (
    KEPT_AWAY,
    LOOK,
    ROOM_KINDS,
    ROOM_SHARE,
    UNSEEN_ROOMS,
)
from agentic_rl.games.builtin.walkthrough import shortest
from agentic_rl.types import TASK_TYPES

SPLITS = ("train", "valid_seen", "valid_unseen")
Menu = dict[str, dict[int, dict[str, list[str]]]]
"""kind of room -> room -> object -> kinds of place."""


@dataclass(frozen=True, slots=True)
class Game:
    """One game: its two files, and the trial folder they lie in."""

    trial: str
    game_file: bytes
    traj_file: bytes


@dataclass(frozen=True)
class Generator:
    shipped: Shipped
    seed: int = 0
    difficulty: Difficulty = DIFFICULTIES["normal"]
    _rooms: dict[int, Room] = field(default_factory=dict, init=False, repr=False)
    _menus: dict[tuple[str, str], Menu] = field(default_factory=dict, init=False, repr=False)

    def game(self, split: str, index: int) -> Game:
        task = TASK_TYPES[index % len(TASK_TYPES)]
        name = self.difficulty.name
        rng = random.Random(f"game/{GENERATOR_VERSION}/{self.seed}/{name}/{split}/{index}")
        for _ in range(200):
            room, wish = self._choose(split, task, rng)
            try:
                return self._make(room, wish, rng)
            except UnfitError:
                continue
        raise RuntimeError(f"no {task} game found for {split} number {index}")

    def _choose(self, split: str, task: str, rng: random.Random) -> tuple[Room, Wish]:
        menu = self._menu(split, task)
        kinds = sorted(menu)
        shares = ROOM_SHARE.get(task, {})
        kind = rng.choices(kinds, [shares.get(kind, 1) for kind in kinds])[0]
        scene = rng.choice(sorted(menu[kind]))
        wanted = rng.choice(sorted(menu[kind][scene]))
        places = menu[kind][scene][wanted]
        if self.difficulty.closed_place is not None and task != LOOK:
            closed = rng.random() < self.difficulty.closed_place
            match = [place for place in places if (place in self.shipped.openable) == closed]
            places = match or places
        return self._room(scene), Wish(task, wanted, rng.choice(places))

    def _make(self, room: Room, wish: Wish, rng: random.Random) -> Game:
        receptacles = trimmed(self.shipped, room, wish, self.difficulty.max_receptacles)
        furnisher = Furnisher(self.shipped, room, receptacles, rng)
        furnisher.add_fixtures()
        furnisher.add_targets(wish, self.difficulty)
        furnisher.add_clutter(wish, self.difficulty)
        furnisher.give_ids()
        things = furnisher.things
        names = names_of([thing.id for thing in things] + [place.id for place in receptacles])
        start = _start(room, receptacles, rng)
        plan = shortest(wish, things, receptacles, start, names.__getitem__)
        trial = _trial_name(rng)
        scene = Scene(wish, receptacles, sorted(things, key=_by_id), start)
        problem = problem_text(self.shipped, scene, trial)
        sentence = rng.choice(self.shipped.goals[wish.task].templates).format(
            obj=wish.kind.lower(), recep=wish.place.lower(), toggle=wish.place.lower(), mrecep=""
        )
        game = {
            "pddl_domain": self.shipped.domain,
            "grammar": self.shipped.grammar.replace(GOAL_PLACEHOLDER, sentence),
            "pddl_problem": problem,
            "solvable": True,
            "walkthrough": plan,
        }
        traj = _task_data(room, wish, trial, sentence)
        traj["generated"] = {
            "by": "agentic-rl",
            "version": GENERATOR_VERSION,
            "difficulty": self.difficulty.name,
        }
        return Game(
            f"{wish.task}-{wish.kind}-None-{wish.place}-{room.scene}/{trial}",
            json.dumps(game).encode(),
            json.dumps(traj, indent=1).encode(),
        )

    def _menu(self, split: str, task: str) -> Menu:
        key = split, task
        if key not in self._menus:
            menu: Menu = {}
            for scene in _scenes(split):
                for kind, place in combinations(self.shipped, self._room(scene), task):
                    if split in ("valid_unseen", seen_split(task, kind, place, scene)):
                        rooms = menu.setdefault(room_kind(scene), {})
                        rooms.setdefault(scene, {}).setdefault(kind, []).append(place)
            self._menus[key] = menu
        return self._menus[key]

    def _room(self, scene: int) -> Room:
        if scene not in self._rooms:
            self._rooms[scene] = build_room(self.shipped, scene)
        return self._rooms[scene]


@lru_cache(maxsize=4)
def shared_generator(seed: int, difficulty: str) -> Generator:
    """One for all splits: it remembers its rooms, and what each can host."""
    return Generator(Shipped.load(), seed, DIFFICULTIES[difficulty])


def _scenes(split: str) -> list[int]:
    if split == "valid_unseen":
        return sorted(UNSEEN_ROOMS)
    return [scene for scenes in ROOM_KINDS.values() for scene in scenes if scene not in KEPT_AWAY]


def _start(room: Room, receptacles: tuple[Receptacle, ...], rng: random.Random) -> Location:
    """Away from every receptacle: a game that opens at one lists no places."""
    taken = {receptacle.location for receptacle in receptacles}
    while True:
        x, z = rng.choice(room.points)
        start = (round(x * 4), round(z * 4), rng.randrange(4), 30)
        if start not in taken:
            return start


def _trial_name(rng: random.Random) -> str:
    date = f"{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"
    clock = f"{rng.randrange(24):02d}{rng.randrange(60):02d}{rng.randrange(60):02d}"
    return f"trial_T2026{date}_{clock}_{rng.randrange(10**6):06d}"


def _by_id(thing: Thing) -> str:
    return thing.id


def _task_data(room: Room, wish: Wish, trial: str, sentence: str) -> dict[str, object]:
    """traj_data.json as the published one has it, without the pictures' parts."""
    look = wish.task == LOOK
    return {
        "task_type": wish.task,
        "task_id": trial,
        "pddl_params": {
            "object_target": wish.kind,
            "mrecep_target": "",
            "parent_target": "" if look else wish.place,
            "toggle_target": wish.place if look else "",
            "object_sliced": False,
        },
        "scene": {"floor_plan": f"FloorPlan{room.scene}", "scene_num": room.scene},
        "turk_annotations": {
            "anns": [{"task_desc": f"{sentence.capitalize()}.", "high_descs": []}]
        },
    }
