"""A table of slips: each is one line with what, where and what to type, and writes nothing."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentic_rl.cli import dispatch
from agentic_rl.commands.train import NO_RECIPE

RECIPES: dict[str, str | bytes] = {
    "mine": "# @package _global_\n# Mine.\nupdates: 2\n",
    "no_package": "updates: 2\n",
    "no_package_but_defaults": "defaults:\n  - override /reward: success_minus_invalid\n",
    "wrong_package": "# @package _globl_\nupdates: 2\n",
    "two_words": "# @package _global_ please\nupdates: 2\n",
    "empty": "",
    "a_list": "# @package _global_\n- updates\n",
    "no_override": "# @package _global_\ndefaults:\n  - /reward: success_minus_invalid\n",
    "unknown_option": "# @package _global_\ndefaults:\n  - override /loss: pppo\n",
    "unknown_group": "# @package _global_\ndefaults:\n  - override /rewrd: x\n",
    "unordered": (
        "# @package _global_\ndefaults:\n  - override /loss: cispo\n  - /advantage: rloo\n"
    ),
    "mapping": "# @package _global_\ndefaults:\n  loss: cispo\n",
    "two_keys": (
        "# @package _global_\ndefaults:\n  - override /loss: cispo\n    override /env: toy\n"
    ),
    "bad_base": "# @package _global_\ndefaults:\n  - /recipe/mien\n",
    "key": "# @package _global_\nlearning_rate: 1\n",
    "inner_key": "# @package _global_\nrollout:\n  max_step: 1\n",
    "value": "# @package _global_\nlr: fast\n",
    "choice": "# @package _global_\nreward: success_minus_invalid\n",
    "brackets": "# @package _global_\nlr: [0.1\nseed: 2\n",
    "tab": "# @package _global_\nrollout:\n\tmax_steps: 2\n",
    "twice": "# @package _global_\nlr: 1\nlr: 2\n",
    "interpolation": "# @package _global_\nlr: ${nothing.here}\n",
    "variable": "# @package _global_\nlr: ${oc.env:NO_SUCH_VARIABLE_HERE}\n",
    "resolver": "# @package _global_\nlr: ${eval:1}\n",
    "unclosed": "# @package _global_\nlr: ${backend\n",
    "swept": "# @package _global_\nhydra:\n  sweeper:\n    params:\n      lr: 0.1,0.2\n",
    "binary": b"\xff\xfe\x00",
}
SLIPS: dict[str, list[str]] = {
    # The first word.
    "tran": ["unknown command 'tran'", "'train'"],
    "swep lr=1,2": ["unknown command 'swep'", "'sweep'"],
    "mien": ["unknown command 'mien'", "+recipe=NAME"],
    "mine": ["'mine' is a recipe", "`agentic-rl +recipe=mine`"],
    "debug lr=1 seed=2": ["'debug' is a recipe", "`agentic-rl +recipe=debug lr=1 seed=2`"],
    "train mine": ["not 'mine'", "+recipe=mine"],
    "train mien": ["not 'mien'", "agentic-rl train --help"],
    "lr=1 eval": ["the command comes first", "agentic-rl eval"],
    "list rewards": ["unknown kind 'rewards'", "'reward'"],
    # Flags.
    "--cfg jbo": ["invalid choice", "job"],
    "--multirum lr=1,2": ["unknown flag '--multirum'", "'--multirun'"],
    "--config-dir nowhere": ["nowhere", "no such folder"],
    "--config-name resolvd": ["no config 'resolvd'", "--config-dir"],
    "sweep --cfg": ["--cfg", "expected one argument"],
    # Recipes.
    "+recipe=mien": ["unknown recipe 'mien'", "'mine'", "Known:"],
    "+recipe=alfwrld_grpo": ["unknown recipe", "'alfworld_grpo'"],
    "+recipe=alfworld_gpro": ["Did you mean 'alfworld_grpo'?"],
    "+recipe=alfworld_hpgo": ["Did you mean 'alfworld_hgpo'?"],
    "recipe=mine": ["+recipe=mine"],
    "++recipe=mine": ["+recipe=mine"],
    "+recipe=": ["names no recipe", "mine"],
    "+recipe=null": ["names no recipe"],
    "+recipe=3": ["names no recipe"],
    "+recipe=mine.yaml": ["+recipe=mine"],
    "+recipe=recipes/mine.yaml": ["+recipe=mine"],
    "'+recipe=[mine,mien]'": ["unknown recipe 'mien'", "'mine'"],
    "+recipes=mine": ["no key 'recipes'", "'recipe'"],
    "+recipe=no_package": ["recipes/no_package.yaml", "# @package _global_"],
    "+recipe=no_package_but_defaults": ["# @package _global_"],
    "+recipe=wrong_package": ["recipes/wrong_package.yaml", "# @package _global_"],
    "+recipe=two_words": ["recipes/two_words.yaml", "@package"],
    "+recipe=empty": ["recipes/empty.yaml", "# @package _global_"],
    "+recipe=a_list": ["recipes/a_list.yaml", "list"],
    "+recipe=no_override": ["recipes/no_override.yaml", "- override /reward"],
    "+recipe=unknown_option": ["unknown loss 'pppo'", "'ppo'"],
    "+recipe=unknown_group": ["recipes/unknown_group.yaml", "no group 'rewrd'", "'reward'"],
    "+recipe=unordered": ["recipes/unordered.yaml", "- override /advantage"],
    "+recipe=mapping": ["recipes/mapping.yaml", "must be a list"],
    "+recipe=two_keys": ["recipes/two_keys.yaml", "Too many keys"],
    "+recipe=bad_base": ["recipes/bad_base.yaml", "unknown recipe 'mien'", "'mine'"],
    "+recipe=key": ["recipes/key.yaml", "no key 'learning_rate'", "'lr'"],
    "+recipe=inner_key": ["recipes/inner_key.yaml", "'rollout.max_steps'"],
    "+recipe=value": ["recipes/value.yaml", "lr takes a number, not 'fast'"],
    "+recipe=choice": ["recipes/choice.yaml", "- override /reward"],
    "+recipe=brackets": ["recipes/brackets.yaml, line 3", "not YAML"],
    "+recipe=tab": ["recipes/tab.yaml, line 3", "not YAML"],
    "+recipe=twice": ["recipes/twice.yaml, line 3", "duplicate key lr"],
    "+recipe=interpolation": ["lr: ${nothing.here} names no key"],
    "+recipe=variable": ["NO_SUCH_VARIABLE_HERE is not set"],
    "+recipe=resolver": ["${eval:...} is no resolver"],
    "+recipe=unclosed": ["lr: cannot read"],
    "+recipe=swept": ["agentic-rl sweep +recipe=swept"],
    "+recipe=binary": ["recipes/binary.yaml", "utf-8"],
    # Components.
    "reward=success_minus_invalit": ["unknown reward", "'success_minus_invalid'", "Known:"],
    "advantage=group_men": ["unknown advantage", "'group_mean'"],
    "backend=liner": ["unknown backend", "'linear'"],
    "protocol=toolcall": ["unknown protocol", "'tool_call'"],
    "reward=": ["names no reward", "Known:"],
    "reward=null": ["names no reward"],
    "loss=[ppo,ppoo]": ["unknown loss 'ppoo'", "'ppo'"],
    "+reward=success_minus_invalid": ["reward=success_minus_invalid", "without a plus"],
    "~reward": ["choose reward=NAME"],
    "~lr": ["not deleted"],
    "rewrd=success_minus_invalid": ["no key 'rewrd'", "'reward'"],
    "rewrd.penalty=1": ["no key 'rewrd'", "'reward'"],
    "reward@advantage=rloo": ["no @"],
    "reward.penaltyy=1": ["'reward.penalty'", "Keys of reward=success_minus_invalid: name, "],
    "+recipe=debug env.workers=1": [
        "env=toy has no key 'env.workers'. Keys of env=toy: name",
        "Options that have it: env=alfworld.",
    ],
    "backend.model=x": ["backend=linear has no key 'backend.model'", "backend=pytrio", "tinker"],
    "tracker.project=x tracker=none": ["tracker=none has no key", "tracker=swanlab"],
    "reward.counts.first=1": ["'first' is no key"],
    "protocol=mine_too": ["unknown protocol 'mine_too'"],
    "reward.name=success_minus_invalit": ["unknown reward", "'success_minus_invalid'"],
    "+reward.penaltyy=1": ["no option 'penaltyy'", "'penalty'"],
    "reward.penalty=much": ["reward.penalty", "much"],
    "tracker=own_broken": ["conf/tracker/own_broken.yaml, line 2", "not YAML"],
    "tracker=own_unknown": ["unknown tracker 'own_unknown'"],
    # Keys.
    "lerning_rate=1": ["no key 'lerning_rate'", "'lr'"],
    "+lerning_rate=1": ["no key 'lerning_rate'", "'lr'"],
    "num_generations=8": ["'group_size'"],
    "temperature=0.5": ["'sampling.temperature'", "'evaluation.temperature'"],
    "rollout.max_step=3": ["'rollout.max_steps'", "Keys of rollout:"],
    "+rollout.max_step=3": ["'rollout.max_steps'"],
    "+lr=1": ["lr is there already", "plus sign"],
    "+mine.own=1": ["no key 'mine'"],
    "command=eval": ["the first word says the command"],
    "hydra.foo=1": ["no key 'hydra.foo'"],
    # Values.
    "lr=abc": ["lr takes a number, not 'abc'"],
    "lr=": ["lr= is empty", "a number"],
    "lr=null": ["lr cannot be null"],
    "lr=-1": ["lr=-1.0 is below 0"],
    "lr=nan": ["lr=nan"],
    "'lr=[0.1,0.2]'": ["lr takes a number"],
    "lr=0.1,0.2": ["agentic-rl sweep lr=0.1,0.2"],
    "'lr=range(1,3)'": ["agentic-rl sweep 'lr=range(1,3)'"],
    "group_size=": ["group_size= is empty", "a whole number"],
    "group_size=0": ["group_size=0 is below 1"],
    "group_size=2.5": ["group_size takes a whole number, not '2.5'"],
    "overwrite=maybe": ["overwrite takes true or false, not 'maybe'"],
    "rollout=3": ["rollout is a section"],
    "rollout.on_error=rety": ["retry, drop, fail", "'retry'"],
    "save.trajectories=al": ["all, evaluation, none", "'all'"],
    "sampling.top_p=0": ["sampling.top_p"],
    "evaluation.splits=valid_seen": ["evaluation.splits takes a list", "[valid_seen]"],
    "evaluation.splits=train,valid_seen": ["evaluation.splits=[train,valid_seen]"],
    "hydra.run.dir=": ["hydra.run.dir is empty"],
    "hydra.mode=FAST": ["hydra.mode", "MULTIRUN"],
    "'hydra.searchpath=[nowhere]'": ["nowhere", "not available"],
    # Spelling.
    "lr==5": ["one = too many", "lr=5"],
    "=5": ["has no key"],
    "seed=1 lr": ["'lr' is no key=value"],
    "'checkpoint=a(b'": ["cannot read", "quote"],
    "'checkpoint=trio://x?y=1'": ["'checkpoint=\"trio://x?y=1\"'"],
    "'lr=[1'": ["cannot read 'lr=[1'"],
    "'l r=1'": ["cannot read"],
    # Sweeps.
    "sweep lr=0.1,fast": ["lr takes a number, not 'fast'"],
    "sweep +recipe=mine,mien": ["unknown recipe 'mien'", "'mine'"],
    "sweep reward=success_minus_invalid,dense": ["unknown reward 'dense'"],
    "sweep group_size=4,0": ["group_size=0 is below 1"],
    "sweep +lerning_rate=1,2": ["no key 'lerning_rate'", "'lr'"],
    "sweep lr=0.1,0.2 hydra/launcher=joblb": ["unknown option of hydra/launcher", "'joblib'"],
    "sweep hydra/launcher=ray lr=1,2": ["pip install 'agentic-rl[ray]'"],
    "eval split=a,b": ["agentic-rl eval -m split=a,b"],
    # What only the components know; they are built before a folder is written.
    "+recipe=debug games.seed=x": ["games 'toy'", "games.seed takes a whole number, not 'x'"],
    "+recipe=debug reward.counts=malformed": ["reward.counts takes a list"],
    "+recipe=debug 'reward.counts=[malformd]'": ["'malformed'"],
    "+recipe=debug protocol.body=yaml": ["xml, json"],
    "+recipe=debug loss.reduction=token": ["'tokens'"],
    "+recipe=debug env=alfworld env.engine=compild": ["'compiled'"],
    "+recipe=debug backend.warm_start=-1": ["backend 'linear'", "warm_start=-1"],
    "+recipe=debug +backend.cold=1": ["has no option 'cold'", "Options:"],
    "+recipe=debug budget.max_cost=1": ["backend.prices"],
    "+recipe=debug split=train": ["split= belongs to eval"],
    "+recipe=debug 'evaluation.splits=[valid_unsen]'": [
        "unknown split 'valid_unsen'",
        "valid_unseen",
    ],
    "+recipe=debug games=alfworld games.root=nowhere": ["nowhere", "agentic-rl data download"],
    "eval +recipe=debug split=tran": ["unknown split 'tran'", "train"],
    # Checkpoints.
    "checkpoint=nowhere": ["nowhere"],
    "eval": ["agentic-rl eval checkpoint="],
    "eval checkpoint=nowhere": ["nowhere"],
    "eval checkpont=outputs/x": ["no key 'checkpont'", "'checkpoint'"],
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own, with recipes and options that hold the slips."""
    (tmp_path / "recipes").mkdir()
    for name, text in RECIPES.items():
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "recipes" / f"{name}.yaml").write_bytes(data)
    options = tmp_path / "conf" / "tracker"
    options.mkdir(parents=True)
    (options / "own_broken.yaml").write_text("name: none\na: b: c\n")
    (options / "own_unknown.yaml").write_text("name: own_unknown\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("line", SLIPS)
def test_a_slip_is_one_line(line: str, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = _files(desk)
    status = dispatch(shlex.split(line))
    out, err = capsys.readouterr()
    assert status in (1, 2)
    err = err.removeprefix(f"{NO_RECIPE}\n")  # no slip, and said before the parts are built
    assert err.count("\n") == 1, err
    assert "Traceback" not in err + out
    assert "\n" not in out.strip()
    for part in SLIPS[line]:
        assert part in err
    assert "use +" not in err
    assert "HYDRA_FULL_ERROR" not in err
    assert _files(desk) == before


@pytest.mark.parametrize(
    "line", ["+recipe=mien", "reward.penaltyy=1", "--multirum lr=1,2", "sweep lr=0.1,fast"]
)
def test_a_slip_is_one_line_in_a_process(line: str, desk: Path) -> None:
    before = _files(desk)
    done = subprocess.run(
        [sys.executable, "-m", "agentic_rl", *shlex.split(line)],
        cwd=desk,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for part in SLIPS[line]:
        assert part in done.stderr
    assert _files(desk) == before


def test_an_option_of_ones_own_does_not_replace_ours(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / "conf" / "tracker" / "none.yaml").write_text("name: none\nmine: true\n")
    assert dispatch(["+recipe=mine"]) == 1
    err = capsys.readouterr().err
    assert "two options are called tracker=none" in err
    assert "rename" in err


def test_the_table_is_long_enough() -> None:
    assert len(SLIPS) >= 60
