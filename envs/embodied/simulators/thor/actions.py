"""Lists the numbered actions of EB-ALFRED: 162 for every scene, and those of one scene."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

FINDABLE = (
    "Cart", "Potato", "Faucet", "Ottoman", "CoffeeMachine", "Candle", "CD", "Pan", "Watch",
    "HandTowel", "SprayBottle", "BaseballBat", "CellPhone", "Kettle", "Mug", "StoveBurner", "Bowl",
    "Toilet", "DiningTable", "Spoon", "TissueBox", "Shelf", "Apple", "TennisRacket", "SoapBar",
    "Cloth", "Plunger", "FloorLamp", "ToiletPaperHanger", "CoffeeTable", "Spatula", "Plate", "Bed",
    "Glassbottle", "Knife", "Tomato", "ButterKnife", "Dresser", "Microwave", "CounterTop",
    "GarbageCan", "WateringCan", "Vase", "ArmChair", "Safe", "KeyChain", "Pot", "Pen", "Cabinet",
    "Desk", "Newspaper", "Drawer", "Sofa", "Bread", "Book", "Lettuce", "CreditCard", "AlarmClock",
    "ToiletPaper", "SideTable", "Fork", "Box", "Egg", "DeskLamp", "Ladle", "WineBottle", "Pencil",
    "Laptop", "RemoteControl", "BasketBall", "DishSponge", "Cup", "SaltShaker", "PepperShaker",
    "Pillow", "Bathtub", "SoapBottle", "Statue", "Fridge", "Sink",
)  # fmt: skip
"""The types of objects that can be found, in EB-ALFRED's order."""

PICKABLE = (
    "KeyChain", "Potato", "Pot", "Pen", "Candle", "CD", "Pan", "Watch", "Newspaper", "HandTowel",
    "SprayBottle", "BaseballBat", "Bread", "CellPhone", "Book", "Lettuce", "CreditCard", "Mug",
    "AlarmClock", "Kettle", "ToiletPaper", "Bowl", "Fork", "Box", "Egg", "Spoon", "TissueBox",
    "Apple", "TennisRacket", "Ladle", "WineBottle", "Cloth", "Plunger", "SoapBar", "Pencil",
    "Laptop", "RemoteControl", "BasketBall", "DishSponge", "Cup", "Spatula", "SaltShaker", "Plate",
    "PepperShaker", "Pillow", "Glassbottle", "SoapBottle", "Knife", "Statue", "Tomato",
    "ButterKnife", "WateringCan", "Vase",
)  # fmt: skip
"""The types of objects that can be picked up, in EB-ALFRED's order."""

OPENABLE = ("Safe", "Laptop", "Fridge", "Box", "Microwave", "Cabinet", "Drawer")
SWITCHED = ("Microwave", "DeskLamp", "FloorLamp", "Faucet")
SLICEABLE = ("Potato", "Lettuce", "Tomato", "Apple", "Bread")

_PUT, _DROP = "put down the object in hand", "drop the object in hand"
_PREFIXES = (
    ("find a ", "go_to", False),
    ("pick up the ", "pick", True),
    ("open the ", "open_up", False),
    ("close the ", "close_up", False),
    ("turn on the ", "turn_on", False),
    ("turn off the ", "turn_off", False),
    ("slice the ", "slice", True),
)


class Skill(NamedTuple):
    """Describes one of the numbered actions.

    Attributes:
        name: The name of the action in prompts, for example ``"pick up the Apple"``.
        verb: The verb of the action, for example ``"go_to"`` or ``"pick"``.
        object: The name of an object, or, if `by_kind`, a type of objects; ``""`` without one.
        by_kind: Whether `object` is a type, so that the scene determines the object.
    """

    name: str
    verb: str
    object: str = ""
    by_kind: bool = False


def global_actions() -> list[str]:
    """Return the 162 actions that every scene has."""
    return [
        *(f"find a {kind}" for kind in FINDABLE),
        *(f"pick up the {kind}" for kind in PICKABLE),
        _PUT,
        _DROP,
        *(f"{verb} the {kind}" for kind in OPENABLE for verb in ("open", "close")),
        *(f"turn {way} the {kind}" for kind in SWITCHED for way in ("on", "off")),
        *(f"slice the {kind}" for kind in SLICEABLE),
    ]


def scene_actions(names: Mapping[str, Sequence[str]], receptacles: Container[str]) -> list[str]:
    """Return the actions on the further objects of a type, in the order of EmbodiedBench.

    The order is: find a receptacle, open and close a receptacle, find another object that can be
    picked up. In each part, the names are sorted as texts, so that ``Cabinet_10`` precedes
    ``Cabinet_2``.

    Args:
        names: The names of the objects of each type, for example ``Mug: [Mug, Mug_2]``.
        receptacles: The types whose objects hold others.
    """
    fixed, movable = dict[str, str](), dict[str, str]()
    for kind, members in names.items():
        if kind in receptacles:
            fixed |= dict.fromkeys(members[1:], kind)
        elif kind in PICKABLE:
            movable |= dict.fromkeys(members[1:], kind)
    return [
        *(f"find a {name}" for name in sorted(fixed)),
        *(
            f"{verb} the {name}"
            for name in sorted(fixed)
            if fixed[name] in OPENABLE
            for verb in ("open", "close")
        ),
        *(f"find a {name}" for name in sorted(movable)),
    ]


def all_actions(
    names: Mapping[str, Sequence[str]], receptacles: Container[str], more: Iterable[str] = ()
) -> list[str]:
    """Return the numbered actions of a scene; missing actions of `more` are appended."""
    listed = [*global_actions(), *scene_actions(names, receptacles)]
    return list(dict.fromkeys([*listed, *more]))


def parse_action(name: str) -> Skill:
    """Parse the name of an action.

    Raises:
        ValueError: If it is not an action of EB-ALFRED.
    """
    if name == _PUT:
        return Skill(name, "put")
    if name == _DROP:
        return Skill(name, "drop")
    for prefix, verb, by_kind in _PREFIXES:
        if name.startswith(prefix):
            return Skill(name, verb, name[len(prefix) :], by_kind)
    raise ValueError(f"{name!r} is not an action of EB-ALFRED.")
