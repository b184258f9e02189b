"""The compiled engine by itself: states, branches, moments written down, the code it writes."""

import asyncio
import io
import keyword
import random
import re
import tokenize

import pytest

from agentic_rl.env.alfworld import AlfworldEnv, CompiledEnv, load_game, open_world
from agentic_rl.env.engine import World
from agentic_rl.env.engine.snapshot import restore, take
from agentic_rl.env.engine.world import Move
from agentic_rl.env.facts import Describer
from agentic_rl.errors import EnvError, IntegrityError
from agentic_rl.types import Task


def _walk(world: World, seed: int, steps: int) -> list[Move]:
    rng = random.Random(seed)
    moves = [world.start]
    for _ in range(steps):
        moves.append(world.step(moves[-1].node, rng.choice([*moves[-1].node.commands, "xyzzy"])))
    return moves


def test_every_walkthrough_wins_at_its_end_and_not_before(builtin_tasks: list[Task]) -> None:
    for task in builtin_tasks:
        move = (world := open_world(load_game(task.game_file))).start
        for number, command in enumerate(task.walkthrough, 1):
            assert command in move.result.admissible_actions
            move = world.step(move.node, command)
            assert move.result.won == move.result.done == (number == len(task.walkthrough))


def test_the_running_hash_and_the_facts_make_the_state(builtin_tasks: list[Task]) -> None:
    for task in builtin_tasks[::3]:
        world = open_world(load_game(task.game_file))
        for move in _walk(world, 1, 60):
            state = move.node.state
            assert world.game.hash_of(state) == state[-1]
            assert world.game.state_of(world.game.stored_facts(state)) == state


def test_results_are_the_same_whatever_was_played_before(builtin_tasks: list[Task]) -> None:
    game = load_game(builtin_tasks[0].game_file)
    world = open_world(game)
    for seed in range(5):
        fresh = [move.result for move in _walk(open_world(game), seed, 40)]
        assert [move.result for move in _walk(world, seed, 40)] == fresh


def test_what_is_remembered_of_a_game_is_bounded(builtin_tasks: list[Task]) -> None:
    game = load_game(builtin_tasks[0].game_file)
    world = World(game, Describer(game), most_nodes=20)
    walks = [_walk(world, seed, 40) for seed in range(10)]
    seen, todo = set(), [world.start.node]
    while todo:
        node = todo.pop()
        seen.add(id(node))
        todo += [m.node for m in node.after.values() if id(m.node) not in seen]
    assert len(seen) < 100
    free = open_world(game)
    for seed, walk in enumerate(walks):
        assert [move.result for move in walk] == [move.result for move in _walk(free, seed, 40)]


def test_commands_are_sorted_and_stripped_but_their_case_counts(builtin_tasks: list[Task]) -> None:
    world = open_world(load_game(builtin_tasks[0].game_file))
    start = world.start
    assert list(start.node.commands) == sorted(set(start.node.commands))
    assert world.step(start.node, " look ").result.admissible
    nothing = world.step(start.node, "LOOK").result
    assert (nothing.observation, nothing.admissible) == ("Nothing happens.", False)


def test_facts_name_hand_and_place(builtin_tasks: list[Task]) -> None:
    task = next(task for task in builtin_tasks if task.task_type == "pick_and_place_simple")
    world = open_world(load_game(task.game_file))
    move = world.start
    assert (move.node.facts.inventory, move.node.facts.location) == ((), "")
    for command in task.walkthrough:
        move = world.step(move.node, command)
        if command.startswith("take"):
            thing = command.removeprefix("take ").split(" from ")[0]
            assert move.node.facts.inventory == (thing,)
            assert command.split(" from ")[1] in move.node.facts.location.split(", ")


def test_digests_are_equal_exactly_where_states_are(builtin_tasks: list[Task]) -> None:
    world = open_world(load_game(builtin_tasks[0].game_file))
    nodes = [move.node for seed in range(6) for move in _walk(world, seed, 40)]
    for node in nodes[::7]:
        for other in nodes[::11]:
            same = node.state[:-1] == other.state[:-1]
            assert (node.facts.digest == other.facts.digest) == same


def test_a_moment_written_down_goes_on_alike(builtin_tasks: list[Task]) -> None:
    sizes = []
    for task in builtin_tasks:
        game = load_game(task.game_file)
        world = open_world(game)
        for move in _walk(world, 3, 50):
            sizes.append(len(take(world, move)))
            other = open_world(game)
            again = restore(other, take(world, move))
            assert (again.result, again.node.state) == (move.result, move.node.state)
        on = [world.step(move.node, command).result for command in move.node.commands]
        assert on == [other.step(again.node, command).result for command in again.node.commands]
    assert max(sizes) < 900


def test_a_moment_of_another_game_is_refused(builtin_tasks: list[Task]) -> None:
    one, two = (open_world(load_game(task.game_file)) for task in builtin_tasks[:2])
    with pytest.raises(IntegrityError, match="another game"):
        restore(two, take(one, one.start))


def test_a_damaged_moment_is_refused_and_nothing_else_comes_of_it(
    builtin_tasks: list[Task],
) -> None:
    world = open_world(load_game(builtin_tasks[0].game_file))
    move = _walk(world, 5, 30)[-1]
    whole = take(world, move)
    rng = random.Random(0)
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(damaged))] = rng.choice(b'0123456789,[]{}":x')
        try:
            again = restore(world, bytes(damaged))
        except IntegrityError:
            continue
        assert again.node.state == move.node.state  # only the last command may read otherwise


def test_the_code_holds_nothing_of_the_file(builtin_tasks: list[Task]) -> None:
    game = load_game(builtin_tasks[0].game_file)
    ours = {"T", "E", "NONE", "KINDS", "CONST", "K", "W", "HASH", "CMD", "make", "str", "statics"}
    ours |= {"kinds", "constants", "texts", "words", "hashes", "merge", "clash", "clash_anywhere"}
    ours |= {"no_text", "expressions", "commands", "applicable", "goal", "intro", "out", "seen"}
    ours |= {"set", "add", "get", "setdefault", "sorted", "join", "listed", "Block", "_"}
    ours |= {"with_pair", "without_pair"}
    for token in tokenize.generate_tokens(io.StringIO(game.shape.source).readline):
        assert token.type not in (tokenize.STRING, tokenize.COMMENT)
        if token.type == tokenize.NAME and token.string not in ours:
            numbered = re.fullmatch(r"[a-z]+\d*_?", token.string)
            assert keyword.iskeyword(token.string) or numbered
    assert "gotolocation" in game.source  # the legend says what the numbers stand for


def test_a_finished_episode_keeps_its_last_result(builtin_tasks: list[Task]) -> None:
    async def play() -> None:
        task = builtin_tasks[0]
        env = await AlfworldEnv().open(task)
        for command in task.walkthrough:
            result = await env.step(command)
        assert result.done
        assert await env.step("look") is result
        assert (await env.reset()).done is False

    asyncio.run(play())


def test_branches_and_restored_episodes_go_their_own_ways(builtin_tasks: list[Task]) -> None:
    async def play() -> None:
        task, pool = builtin_tasks[0], AlfworldEnv()
        env = await pool.open(task)
        await env.step(task.walkthrough[0])
        before = env.last
        assert isinstance(env, CompiledEnv)
        others = [await env.branch(), await pool.restore(task, env.snapshot())]
        for other in others:
            assert other.last == before
            await other.step(task.walkthrough[1])
        assert env.last == before
        assert others[0].last == others[1].last

    asyncio.run(play())


def test_a_game_that_changed_since_it_was_listed_is_refused(builtin_tasks: list[Task]) -> None:
    task = builtin_tasks[0]
    other = Task(task.task_id, task.split, task.task_type, task.game_file, "0" * 64)
    with pytest.raises(EnvError, match="sha256"):
        asyncio.run(AlfworldEnv().open(other))


@pytest.mark.parametrize("fields", [{"engine": "compild"}, {"workers": 0}, {"timeout": 0.0}])
def test_a_wrong_option_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"engine|workers|timeout"):
        AlfworldEnv(**fields)  # type: ignore[arg-type]
