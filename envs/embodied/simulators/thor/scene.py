"""Names the objects that ai2thor reports by the names that the actions use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Point = tuple[float, float, float]
"""x, y and z in meters, as in ai2thor: y points up."""

FLOOR = "Floor"
BASINS = ("SinkBasin", "Sink")
"""Types of objects below a faucet: the basin of a sink, or a sink without basin."""

_SLICED = "Sliced"
_BASIN_OF = {"Sink": "SinkBasin", "Bathtub": "BathtubBasin"}
_OWNERS = {basin: owner for owner, basin in _BASIN_OF.items()}


class Scene:
    """Names the objects of a scene, and parses ai2thor's reports about them.

    The objects of each type are numbered in the order of the first report: ``Mug``, ``Mug_2``. A
    sliced object is missing in later reports; its name then refers to its first slice. The basin of
    a sink or bathtub, which ai2thor reports as a separate object, has the name of the sink or
    bathtub.

    Args:
        metadata: The metadata of the first event of the scene.

    Attributes:
        names: The names of the objects of each type.
        receptacles: The types of objects that hold others.
        metadata: The most recent metadata.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.names: dict[str, list[str]] = {}
        self.receptacles = {
            str(each["objectType"]) for each in metadata["objects"] if each.get("receptacle")
        }
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        basins = [each for each in metadata["objects"] if each["objectType"] in _OWNERS]
        for each in metadata["objects"]:
            if each in basins:
                continue
            members = self.names.setdefault(each["objectType"], [])
            number = len(members) + 1
            name = each["objectType"] + (f"_{number}" if number > 1 else "")
            members.append(name)
            self._ids[name] = each["objectId"]
            self._names[each["objectId"]] = name
        self.update(metadata)
        for each in basins:
            self._names[each["objectId"]] = self._name_of_basin(each)

    def _name_of_basin(self, basin: Mapping[str, Any]) -> str:
        """Return the name of the sink or bathtub that a basin is part of."""
        owner = basin["objectId"].rpartition("|")[0]
        if owner not in self._names:
            members = self.names.get(_OWNERS[basin["objectType"]], [])
            owners = [self._ids[name] for name in members]
            owner = self.nearest(basin["objectId"], owners) if owners else ""
        return self._names.get(owner, str(basin["objectType"]))

    def update(self, metadata: Mapping[str, Any]) -> None:
        """Store the metadata of an event."""
        self.metadata = metadata
        self.by_id: dict[str, Mapping[str, Any]] = {
            each["objectId"]: each for each in metadata["objects"]
        }

    def id_of(self, name: str) -> str:
        """Return the id of an object, ``""`` if there is none of that name."""
        identity = self._ids.get(name, "")
        if identity and identity not in self.by_id:
            slices = sorted(each for each in self.by_id if each.startswith(f"{identity}|"))
            return slices[0] if slices else ""
        return identity

    def name_of(self, identity: str) -> str:
        """Return the name of an object; a slice has the name of the sliced object."""
        if identity in self._names:
            return self._names[identity]
        name: str = self._names.get(identity.rpartition("|")[0], identity.partition("|")[0])
        return name

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Return the metadata of an object, or None."""
        return self.by_id.get(self.id_of(name))

    def kind_of(self, identity: str) -> str:
        """Return the type of an object; a slice has the type of the sliced object."""
        kind = str(self.by_id[identity]["objectType"])
        return kind.removesuffix(_SLICED)

    @property
    def held(self) -> str:
        """Return the id of the object in hand, ``""`` if there is none."""
        inventory = self.metadata["inventoryObjects"]
        return str(inventory[0]["objectId"]) if inventory else ""

    # ------------------------------------------------------------------ receptacles

    def holder_of(self, identity: str) -> str:
        """Return the id of the receptacle that directly holds an object, ``""`` if there is none.

        ai2thor lists all receptacles of an object; the direct one contains none of the others.
        """
        parents = [
            each
            for each in self.by_id[identity].get("parentReceptacles") or ()
            if each in self.by_id
        ]
        inner = [
            each
            for each in parents
            if not any(
                each in (self.by_id[other].get("parentReceptacles") or ()) for other in parents
            )
        ]
        direct: str = (inner or parents or [""])[0]
        return direct

    def holders_of(self, identity: str) -> list[str]:
        """Return the ids of the receptacles that hold an object, the direct one first."""
        path: list[str] = []
        holder = self.holder_of(identity)
        while holder and holder not in path:
            path.append(holder)
            holder = self.holder_of(holder)
        return path

    def contents(self, identity: str) -> list[str]:
        """Return the ids of the objects that a receptacle holds directly, in its order."""
        listed = self.by_id[identity].get("receptacleObjectIds") or ()
        return [each for each in listed if each in self.by_id and self.holder_of(each) == identity]

    def all_contents(self, identity: str) -> list[str]:
        """Return the ids of the objects that a receptacle holds, also those inside others."""
        direct = self.contents(identity)
        return [*direct, *(inner for each in direct for inner in self.all_contents(each))]

    def basin_of(self, identity: str) -> str:
        """Return the object that receives others: the basin of a sink or bathtub, else itself."""
        kind = _BASIN_OF.get(self.kind_of(identity))
        basins = [each for each in self.by_id if self.by_id[each]["objectType"] == kind]
        return self.nearest(identity, basins) if basins else identity

    def basin_under(self, faucet: str) -> str:
        """Return the id of the basin that is nearest to a faucet, ``""`` if there is none."""
        for kind in BASINS:
            basins = [each for each in self.by_id if self.by_id[each]["objectType"] == kind]
            if basins:
                return self.nearest(faucet, basins)
        return ""

    def is_receptacle(self, identity: str) -> bool:
        """Return whether an object, or its basin, receives others."""
        pair = (identity, self.basin_of(identity))
        return any(bool(self.by_id[each].get("receptacle")) for each in pair)

    def shut_holder(self, identity: str) -> str:
        """Return the outermost closed receptacle that hides an object, ``""`` if none does."""
        shut = [each for each in self.holders_of(identity) if self.is_shut(each)]
        return shut[-1] if shut else ""

    def is_shut(self, identity: str) -> bool:
        """Return whether a receptacle is closed."""
        each = self.by_id[identity]
        return bool(each.get("openable")) and not each.get("isOpen")

    # ------------------------------------------------------------------ positions

    def nearest(self, identity: str, others: Sequence[str]) -> str:
        """Return the id of the nearest of some objects."""
        origin = self.position(identity)
        return min(others, key=lambda each: math.dist(origin, self.position(each)))

    def position(self, identity: str) -> Point:
        """Return the position of an object."""
        found = self.by_id[identity]["position"]
        return found["x"], found["y"], found["z"]

    def place_key(self, identity: str) -> tuple[bool, str, int]:
        """Return the sort key of objects of a type: their receptacle, and their order in it."""
        holder = self.holder_of(identity)
        if not holder:
            return True, "", 0
        listed = self.contents(holder)
        return (
            self.by_id[holder]["objectType"] == FLOOR,
            self.name_of(holder),
            listed.index(identity),
        )
