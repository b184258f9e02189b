"""A second PDDL domain, unlike ALFWorld's: what the engine has to read in general.

Conditional effects, `forall`, `imply`, `or`, an existential precondition, fluents of no and three
places, texts about what was deleted, rules with conditions, lists, and a command worded by a query.
"""

import json
from typing import Any

DOMAIN = """
(define (domain lighthouse) (:requirements :adl :action-costs :typing)
 (:types keeper room tool)
 (:predicates (at ?k - keeper ?r - room) (in ?t - tool ?r - room) (stairs ?x - room ?y - room)
   (has ?k - keeper ?t - tool) (lit ?r - room) (tired ?k - keeper) (rested ?k - keeper)
   (seen ?r - room) (storm) (light ?t - tool) (carried ?t - tool ?x - room ?y - room))
 (:functions (total-cost) - number)
 (:action climb :parameters (?k - keeper ?x - room ?y - room)
   :precondition (and (at ?k ?x) (stairs ?x ?y) (or (lit ?x) (lit ?y)))
   :effect (and (not (at ?k ?x)) (at ?k ?y) (increase (total-cost) 1)))
 (:action grab :parameters (?k - keeper ?r - room ?t - tool)
   :precondition (and (at ?k ?r) (in ?t ?r) (not (tired ?k))
     (forall (?o - tool) (or (not (has ?k ?o)) (light ?o))))
   :effect (and (not (in ?t ?r)) (has ?k ?t) (when (not (storm)) (tired ?k))))
 (:action drop :parameters (?k - keeper ?r - room ?t - tool)
   :precondition (and (at ?k ?r) (has ?k ?t))
   :effect (and (in ?t ?r) (not (has ?k ?t)) (not (tired ?k))))
 (:action kindle :parameters (?k - keeper ?r - room)
   :precondition (and (at ?k ?r) (not (lit ?r))) :effect (and (lit ?r)))
 (:action quench :parameters (?k - keeper ?r - room)
   :precondition (and (at ?k ?r) (lit ?r)) :effect (and (not (lit ?r))))
 (:action peer :parameters (?k - keeper ?y - room)
   :precondition (exists (?x - room) (and (at ?k ?x) (stairs ?x ?y))) :effect (and (seen ?y)))
 (:action rest :parameters (?k - keeper) :precondition () :effect (and (rested ?k) (storm)))
 (:action carry :parameters (?k - keeper ?t - tool ?x - room ?y - room)
   :precondition (and (at ?k ?x) (has ?k ?t) (stairs ?x ?y) (imply (storm) (lit ?y)))
   :effect (and (carried ?t ?x ?y) (in ?t ?y) (not (has ?k ?t)) (not (tired ?k))))
)"""

_RULES = {
    "intro": [{"rhs": "The lighthouse.\n\n#look#\n\n#task#"}],
    "task": [{"rhs": "Your task is to: tidy up."}],
    "look": [
        {
            "condition": "at(k:keeper, r:room) & lit(r:room)",
            "rhs": "Lit: [{r.name | at(k:keeper, r:room)}] with"
            " [{t.indefinite + ' ' + t.name | at(k:keeper, r:room) & in(t:tool, r:room)}]; ",
        },
        {
            "rhs": "Dark. Lit rooms: [{r.name | lit(r:room)}]."
            " Gone: [{#gone(t)# | not_in(t:tool, r:room)}]."
        },
    ],
    "gone(t)": [
        {"condition": "has(k:keeper, t:tool)", "rhs": "{t.definite} {t.name or t.id} (in hand)"},
        {"rhs": "{t.name} out of {r.name}"},
    ],
    "climb": [
        {
            "rhs": "From {x.name} to {y.name}. #look#"
            " Stairs: [{x2.name + '-' + y2.name | stairs(x2:room, y2:room)}]"
        }
    ],
    "grab": [{"rhs": "Got {t.name}. #look#"}],
    "drop": [{"rhs": "Down. Carried: [{x.name + '>' + y.name | carried(t:tool, x:room, y:room)}]"}],
    "lamp": [{"condition": "lit(r:room)", "rhs": "It is bright."}, {"rhs": "It is dark."}],
    "peer": [{"rhs": "Up there: [{t.name | in(t:tool, y:room)}]"}],
    "rest": [{"rhs": "All carried: [{#each# | carried(t:tool, x:room, y:room)}]"}],
    "each": [{"rhs": "{t.name}:{x.name}:{y.name}"}],
    "carry": [{"rhs": "Heave {t.name} {x.type}"}],
    "list_empty": [{"rhs": "nothing"}],
    "list_separator": [{"rhs": ", "}],
    "list_last_separator": [{"rhs": " and "}],
}

_COMMANDS = (
    ("climb", "climb to {y}", "climb"),
    ("grab", "grab {t}", "grab"),
    ("drop", "drop {t}", "drop"),
    ("kindle", "kindle", "lamp"),
    ("quench", "quench", "lamp"),
    ("peer", "peer into [{y.name | stairs(x:room, y:room)}]", "peer"),
    ("rest", "rest", "rest"),
    ("carry", "carry {t} to {y}", "carry"),
)

_STAIRS = ((0, 1), (1, 0), (1, 2), (2, 1), (2, 2), (2, 3), (3, 0), (3, 4), (4, 3))
# Ids with `_bar_` are instances, which ALFWorld numbers: `key_bar_2` is called `key 1`.
_TOOLS = ("bell_bar_1", "coil_bar_1", "anchor_bar_1", "wick_bar_1", "key_bar_2", "key_bar_10")

_GOAL = """(and (exists (?t - tool) (and (or (in ?t room_bar_4) (in ?t room_bar_2)) (light ?t)
   (forall (?r - room) (or (not (lit ?r)) (stairs ?r room_bar_1) (stairs ?r room_bar_3)))))
   (not (in anchor_bar_1 room_bar_2)))"""


def grammar(rules: dict[str, Any] | None = None, commands: Any = _COMMANDS) -> str:
    """The grammar's text, with rules added or replaced."""
    text = f'grammar :: """\n{json.dumps({**_RULES, **(rules or {})}, indent=1)}\n""";\n'
    for name, template, feedback in commands:
        text += (
            f'action {name} {{\n  template :: "{template}";\n  feedback :: "#{feedback}#";\n}}\n'
        )
    return text


def problem(goal: str = _GOAL, facts: str = "") -> str:
    rooms = [f"room_bar_{n}" for n in range(5)]
    start = [f"(stairs room_bar_{x} room_bar_{y})" for x, y in _STAIRS]
    start += [f"(in {tool} room_bar_{n % 5})" for n, tool in enumerate(_TOOLS)]
    return f"""(define (problem p) (:domain lighthouse)
 (:objects me - keeper {" ".join(rooms)} - room {" ".join(_TOOLS)} - tool)
 (:init (= (total-cost) 0) (at me room_bar_0) (lit room_bar_0) (lit room_bar_2)
  (light coil_bar_1) (light bell_bar_1)
  {" ".join(start)} {facts})
 (:goal {goal})
 (:metric minimize (total-cost)))"""


def game(**parts: str) -> bytes:
    """A whole game file; any of `pddl_domain`, `grammar`, `pddl_problem` can be replaced."""
    whole = {"pddl_domain": DOMAIN, "grammar": grammar(), "pddl_problem": problem()}
    return json.dumps({**whole, **parts, "solvable": True, "walkthrough": []}).encode()
