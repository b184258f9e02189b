"""Tables of our own, measured on the published games."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROOM_KINDS = {
    "Kitchen": range(1, 31),
    "LivingRoom": range(201, 231),
    "Bedroom": range(301, 331),
    "Bathroom": range(401, 431),
}
UNSEEN_ROOMS = (10, 219, 308, 424)
"""The rooms of the published valid_unseen."""
KEPT_AWAY = frozenset({*UNSEEN_ROOMS, 9, 29, 215, 226, 315, 325, 404, 425})
"""Rooms that training never sees: those, and the eight that ALFRED tests in."""

CROWD = {
    "DiningTable": 7.0,
    "CounterTop": 4.6,
    "Desk": 4.6,
    "Fridge": 5.0,
    "Bed": 4.5,
    "Dresser": 3.4,
    "CoffeeTable": 4.4,
    "Cart": 1.5,
    "SideTable": 1.9,
    "Sofa": 2.4,
    "TVStand": 3.0,
    "Toilet": 1.6,
    "SinkBasin": 1.6,
    "GarbageCan": 1.2,
    "Shelf": 0.8,
    "ArmChair": 0.9,
    "Microwave": 1.4,
    "BathtubBasin": 1.5,
    "Ottoman": 1.2,
    "Cabinet": 0.6,
    "Drawer": 0.6,
    "Safe": 1.6,
    "StoveBurner": 0.6,
    "CoffeeMachine": 0.4,
    "HandTowelHolder": 0.9,
    "TowelHolder": 0.9,
    "ToiletPaperHanger": 0.3,
    "LaundryHamper": 0.05,
}
"""Things in a receptacle of this kind on average: the weight with which one lands there."""
CROWD_ELSEWHERE = 0.5

OWN_PLACE = {
    ("Pot", "StoveBurner"): 12,
    ("Pan", "StoveBurner"): 12,
    ("Kettle", "StoveBurner"): 6,
    ("Mug", "CoffeeMachine"): 9,
    ("HandTowel", "HandTowelHolder"): 12,
    ("ToiletPaper", "ToiletPaperHanger"): 5,
}
"""Things go to a place of their own more often than its size says: a factor on the weight."""

ROOM_FOR = {
    "CoffeeMachine": 1,
    "StoveBurner": 1,
    "ToiletPaperHanger": 1,
    "HandTowelHolder": 1,
    "TowelHolder": 1,
    "Drawer": 3,
    "Cabinet": 3,
    "Safe": 2,
    "Microwave": 3,
}
ROOM_FOR_ELSEWHERE = 12

UNPLACED = {"StoveBurner": (4, 4), "HandTowelHolder": (1, 2), "TowelHolder": (1, 2)}
"""How many there are of a receptacle that the shipped tables name without a position; else one."""

STUCK = {
    "Kitchen": {"Cabinet": (1, 5), "Drawer": (0, 2)},
    "Bedroom": {"Drawer": (0, 2)},
    "Bathroom": {"Drawer": (0, 1)},
    "LivingRoom": {},
}
"""Cupboards and drawers that cannot be opened, their contents in plain sight: fewest and most."""

PICKUPABLE = _names(
    """AlarmClock Apple BaseballBat BasketBall Book Boots Bowl Box Bread ButterKnife CD Candle
    CellPhone Cloth CreditCard Cup DishSponge Egg Fork Glassbottle HandTowel Kettle KeyChain
    Knife Ladle Laptop Lettuce Mug Newspaper Pan PaperTowelRoll Pen Pencil PepperShaker
    Pillow Plate Plunger Pot Potato RemoteControl SaltShaker ScrubBrush SoapBar SoapBottle
    Spatula Spoon SprayBottle Statue TeddyBear TennisRacket TissueBox ToiletPaper Tomato
    Towel Vase Watch WateringCan WineBottle"""
)
SINGLE = _names(
    """BaseballBat BasketBall Boots PaperTowelRoll Plunger ScrubBrush TeddyBear TennisRacket"""
)
"""Never more than one in a room."""
FEW = _names("""Pan Pot Laptop Pillow Box HandTowel Bread AlarmClock""")
"""Never more than two in a room."""

EXTRA_HOMES = {
    "TeddyBear": ("Bed",),
    "Statue": ("TVStand",),
    "RemoteControl": ("TVStand",),
    "CreditCard": ("TVStand",),
    "KeyChain": ("TVStand",),
    "Watch": ("TVStand",),
    "Vase": ("TVStand",),
    "PaperTowelRoll": ("CounterTop", "GarbageCan", "DiningTable", "Shelf", "Toilet"),
}
"""Where things start that the shipped tables would not allow to be put there."""

LAMP = "DeskLamp"
FIXED_ON = {
    LAMP: ("SideTable", "Desk", "Dresser", "Shelf", "CoffeeTable"),
    "HousePlant": (
        "CounterTop",
        "DiningTable",
        "SideTable",
        "Dresser",
        "Desk",
        "Shelf",
        "CoffeeTable",
        "TVStand",
    ),
    "Television": ("TVStand", "Dresser", "SideTable"),
}
"""Things that cannot be picked up, and what they stand on."""

PICK, LOOK, TWO = "pick_and_place_simple", "look_at_obj_in_light", "pick_two_obj_and_place"
CLEAN, HEAT, COOL = (
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
)
_NO_PLACE = _names(
    """SinkBasin BathtubBasin TowelHolder HandTowelHolder CoffeeMachine StoveBurner TVStand
    LaundryHamper Toaster"""
)
NOT_ASKED_FOR: dict[str, frozenset[str]] = {
    PICK: _NO_PLACE,
    TWO: _NO_PLACE | {"ToiletPaperHanger"},
    CLEAN: frozenset({"SinkBasin", "BathtubBasin"}),
    HEAT: frozenset({"Microwave", "SinkBasin"}),
    COOL: frozenset({"Fridge", "SinkBasin"}),
}
"""Kinds of receptacle that no task of this type asks for."""

STATIONS = {
    CLEAN: ("Cleanable", "SinkBasin", "clean"),
    HEAT: ("Heatable", "Microwave", "heat"),
    COOL: ("Coolable", "Fridge", "cool"),
}
"""What such a task needs: an object that affords this, the receptacle to do it at, and the verb."""

LOOKED_AT = _names(
    """Pillow AlarmClock CD Book Pencil Bowl Laptop Pen Newspaper Statue Box TissueBox
    CellPhone Mug Watch CreditCard KeyChain Vase Plate RemoteControl"""
)

ROOM_SHARE = {
    PICK: {"Bathroom": 33, "Bedroom": 30, "LivingRoom": 26, "Kitchen": 11},
    TWO: {"Bathroom": 29, "Bedroom": 29, "LivingRoom": 26, "Kitchen": 16},
    LOOK: {"Bedroom": 84, "LivingRoom": 16},
    CLEAN: {"Kitchen": 76, "Bathroom": 24},
}
"""Where each task takes place, about as often as in the published games; else anywhere alike."""

DOMAIN_OBJECT_KINDS = ("Knife", "ButterKnife", "Sink")
DOMAIN_RECEPTACLE_KINDS = ("SinkBasin", "Microwave", "Fridge")
"""Kinds that the domain's rules mention: a problem that lacks one of them does not load."""
