"""ALFWorld's goals, read from a game's formula: put things somewhere, or look at one by a lamp."""

from dataclasses import dataclass

from agentic_rl.env.engine import Game
from agentic_rl.env.engine.formula import All, Atom, Equal, Exists, Formula, FormulaReader

TREATMENTS = {
    "isclean": ("cleanable", ("sinktype", "sinkbasintype")),
    "ishot": ("heatable", ("microwavetype",)),
    "iscool": ("coolable", ("fridgetype",)),
}
"""What a thing can become: what it must be for that, and the receptacles that do it."""


@dataclass(frozen=True, slots=True)
class Place:
    """`count` things of a type, treated where `treatment` is named, in one receptacle of a type."""

    thing: str
    receptacle: str
    count: int = 1
    treatment: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """A thing of a type in hand, beside a lamp of a type that is on."""

    thing: str
    lamp: str


def goal_of(game: Game) -> Place | Look | None:
    """None for a goal of another kind."""
    atoms: list[Atom] = []
    unequal: list[Equal] = []
    if not _collect(FormulaReader().read(game.goal_tree), atoms, unequal):
        return None
    if {"holds", "istoggled"} <= {atom.predicate for atom in atoms}:
        return _look(atoms) if not unequal else None
    return _place(atoms, unequal)


def _collect(formula: Formula, atoms: list[Atom], unequal: list[Equal]) -> bool:
    """All literals of existential conjunctions; False where there is anything else."""
    match formula:
        case All(parts):
            return all(_collect(part, atoms, unequal) for part in parts)
        case Exists(_, body):
            return _collect(body, atoms, unequal)
        case Atom(holds=True):
            atoms.append(formula)
            return True
        case Equal(holds=False):
            unequal.append(formula)
            return True
    return False


def _look(atoms: list[Atom]) -> Look | None:
    kinds = {atom.args[0]: atom.args[1] for atom in atoms if atom.predicate == "objecttype"}
    held = [atom.args[1] for atom in atoms if atom.predicate == "holds"]
    lamps = [atom.args[0] for atom in atoms if atom.predicate == "istoggled"]
    if len(held) != 1 or len(lamps) != 1 or set(kinds) != {held[0], lamps[0]}:
        return None
    expected = ["atlocation", "holds", "inreceptacle", "istoggled", "objecttype", "objecttype"]
    expected += ["receptacleatlocation", "toggleable"]
    if sorted(atom.predicate for atom in atoms) != expected:
        return None
    return Look(kinds[held[0]], kinds[lamps[0]])


def _place(atoms: list[Atom], unequal: list[Equal]) -> Place | None:
    things = {atom.args[0]: atom.args[1] for atom in atoms if atom.predicate == "objecttype"}
    places = {atom.args for atom in atoms if atom.predicate == "receptacletype"}
    if len(set(things.values())) != 1 or len(places) != 1 or len(things) > 2:
        return None
    (receptacle, kind), treatment = next(iter(places)), ""
    expected = {Atom("receptacletype", (receptacle, kind))}
    for thing, name in things.items():
        expected |= {Atom("objecttype", (thing, name)), Atom("inreceptacle", (thing, receptacle))}
    for name, (able, _) in TREATMENTS.items():
        if any(atom.predicate == name for atom in atoms) and len(things) == 1:
            treatment = name
            expected |= {Atom(name, (next(iter(things)),)), Atom(able, (next(iter(things)),))}
    apart = [frozenset((each.left, each.right)) for each in unequal]
    if set(atoms) != expected or apart != [frozenset(things)] * (len(things) - 1):
        return None
    return Place(next(iter(things.values())), kind, len(things), treatment)
