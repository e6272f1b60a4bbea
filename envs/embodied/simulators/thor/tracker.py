"""Tracks the objects that ALFRED counts as heated, cooled, cleaned and delivered."""

from __future__ import annotations

from .scene import BASINS, Scene

_HEATERS = ("Microwave", "StoveBurner")


class Tracker:
    """Tracks the effects of the appliances of a scene.

    A microwave or burner heats the objects in it when it is turned on, a fridge cools the objects
    in it when it is closed, and a faucet cleans the objects in the nearest basin when it is turned
    on. An object that is put into a running appliance is heated or cleaned, too.

    Attributes:
        hot: Ids of heated objects.
        cold: Ids of cooled objects.
        clean: Ids of cleaned objects.
        delivered: Every object with every receptacle that it was put into, by name.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.hot: set[str] = set()
        self.cold: set[str] = set()
        self.clean: set[str] = set()
        self.delivered: set[tuple[str, str]] = set()

    def turned_on(self, identity: str) -> None:
        """Record that an appliance was turned on."""
        kind = self.scene.kind_of(identity)
        if kind in _HEATERS:
            self._heat(self.scene.all_contents(identity))
        elif kind == "Faucet":
            basin = self.scene.basin_under(identity)
            self.clean |= set(self.scene.all_contents(basin)) if basin else set()

    def closed(self, identity: str) -> None:
        """Record that a receptacle was closed."""
        if self.scene.kind_of(identity) == "Fridge":
            inside = set(self.scene.all_contents(identity))
            self.cold |= inside
            self.hot -= inside

    def put(self, identity: str) -> None:
        """Record that an object was put down."""
        scene = self.scene
        carried = [identity, *scene.all_contents(identity)]
        holders = scene.holders_of(identity)
        self.delivered |= {
            (scene.name_of(each), scene.name_of(holder)) for each in carried for holder in holders
        }
        for holder in holders:
            kind = scene.kind_of(holder)
            if kind in _HEATERS and scene.by_id[holder].get("isToggled"):
                self._heat(carried)
            elif kind in BASINS and any(
                scene.by_id[each].get("isToggled") and scene.basin_under(each) == holder
                for each in scene.by_id
                if scene.by_id[each]["objectType"] == "Faucet"
            ):
                self.clean |= set(carried)

    def _heat(self, identities: list[str]) -> None:
        self.hot |= set(identities)
        self.cold -= set(identities)
