"""Puts objects into a layout, starting with the objects of the task."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from visenv.worlds.draws import pick, shuffled

from .fixtures import FIXTURES, SHELVES
from .house import Fixture, FurnishedHouse, Item
from .items import ITEMS, SIZES, ItemLook, Material, Size, Split, looks_of
from .layout import Layout, numbered
from .render.camera import slot_depth
from .state import HouseState

NO_STORAGE = frozenset({"Sink", "StoveBurner", "Microwave", "CoffeeMachine"})
"""Fixtures that are empty at the beginning, because tasks use them."""

OPEN_STORAGE = frozenset(
    kind
    for kind, each in FIXTURES.items()
    if each.slots > 1 and not each.opening and kind not in NO_STORAGE and kind != "GarbageCan"
)
"""Fixtures whose objects are visible and reachable without opening anything."""

_DIRTY_SHARE = 0.3

_SAME_DEPTH = 1.1
"""Maximum ratio of depths from which two sizes are compared; the sizes have a ratio of 1.25."""


class NoSpaceError(Exception):
    """Raised when a layout has no place for the objects of a task; another layout is then tried."""


@dataclass(slots=True)
class _Pending:
    """Represents an object without a name."""

    kind: str
    look: ItemLook
    fixture: str
    slot: int
    dirty: bool | None
    yaw: float


class Furnisher:
    """Puts objects into a layout. Objects are identified by the order in which they were added.

    Args:
        rng: The random generator.
        layout: The rooms and fixtures.
        split: The split whose appearances are used.
        reserved: Fixtures whose slots stay empty.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        layout: Layout,
        split: Split,
        reserved: Collection[str] = (),
    ) -> None:
        self.rng = rng
        self.layout = layout
        self.split: Split = split
        self.fixtures = {each.name: each for each in layout.fixtures}
        self.reserved = {*reserved}
        self._pending: list[_Pending] = []
        self._taken: set[tuple[str, int]] = set()

    def add(
        self,
        kind: str,
        look: ItemLook | None = None,
        avoid: Collection[str] = (),
        shut: bool = False,
        dirty: bool | None = None,
        among: Collection[tuple[str, int]] | None = None,
    ) -> int:
        """Add an object at a random place; return its number.

        Args:
            kind: The type of the object, a key of `ITEMS`.
            look: The look of the object; by default one that no object of this type has yet.
            avoid: Fixtures that must not contain it.
            shut: Whether it may be inside a fixture that opens.
            dirty: Whether it is dirty; None draws it.
            among: The fixtures and slots that may contain it; None for all.

        Raises:
            NoSpaceError: If there is no free place, or no unused look.
        """
        places = self._free_places(avoid, shut)
        if among is not None:
            places = [place for place in places if place in among]
        if not places:
            raise NoSpaceError
        return self._append(kind, look, pick(self.rng, places), dirty)

    def add_row(
        self, kinds: Sequence[str], avoid: Collection[str], dirty: Mapping[str, bool]
    ) -> list[int]:
        """Add objects side by side, from left to right; return their numbers.

        Raises:
            NoSpaceError: If no fixture has so many free slots in a row.
        """
        rows = []
        for name, each in self.fixtures.items():
            if name in avoid or not self._stores(each, False) or each.kind in SHELVES:
                continue
            for start in range(each.type.slots - len(kinds) + 1):
                # No other object may be next to the row's ends.
                span = range(max(0, start - 1), min(each.type.slots, start + len(kinds) + 1))
                if all((name, slot) not in self._taken for slot in span):
                    rows.append((name, start))
        if not rows:
            raise NoSpaceError
        name, start = pick(self.rng, rows)
        added = [
            self._append(kind, None, (name, start + place), dirty.get(kind))
            for place, kind in enumerate(kinds)
        ]
        self._taken |= {(name, start - 1), (name, start + len(kinds))}
        return added

    def equally_near(self, avoid: Collection[str]) -> set[tuple[str, int]]:
        """Return open places at which equal objects look equally large after navigating there.

        The places are those with about the depth of a random one.

        Raises:
            NoSpaceError: If there is no free place.
        """
        state = HouseState(self._house({}, {}, frozenset(), 0))
        depths = {
            (name, slot): slot_depth(state, self.fixtures[name], slot)
            for name, slot in self._free_places(avoid, False)
        }
        if not depths:
            raise NoSpaceError
        nearest = depths[pick(self.rng, [*depths])] / math.sqrt(_SAME_DEPTH)
        return {
            place for place, depth in depths.items() if nearest <= depth <= nearest * _SAME_DEPTH
        }

    def fixture_of(self, number: int) -> str:
        """Return the fixture in which an object was put."""
        return self._pending[number].fixture

    def fill(self, kinds: int, extra: int, without: Collection[str] = ()) -> None:
        """Add objects until there are `kinds` types, then `extra` more, if there is space.

        Args:
            kinds: The number of types in the house.
            extra: Number of further objects, of types that already occur.
            without: Types that are not added.
        """
        there = {each.kind for each in self._pending}
        new = [kind for kind in shuffled(self.rng, [*ITEMS]) if kind not in there]
        new = [kind for kind in new if kind not in without][: max(0, kinds - len(there))]
        more = [kind for kind in [*there, *new] if kind not in without]
        wanted = [*new, *(pick(self.rng, sorted(more)) for _ in range(extra if more else 0))]
        for kind in wanted:
            try:
                self.add(kind, avoid=self.reserved, shut=bool(self.rng.random() < 0.6))
            except NoSpaceError:
                continue

    def new_look(self, kind: str, size: Size | None = None) -> ItemLook:
        """Return a look whose color no object of this type has yet.

        Raises:
            NoSpaceError: If all colors are taken.
        """
        taken = {each.look.color for each in self._pending if each.kind == kind}
        options = [each for each in looks_of(kind, self.split) if each[0] not in taken]
        if not options:
            raise NoSpaceError
        color, pattern = pick(self.rng, options)
        material: Material = "shiny" if self.rng.random() < 0.5 else "matte"
        sizes: list[Size] = [size] if size else [*SIZES]
        return ItemLook(color, pattern, material, pick(self.rng, sizes))

    def finish(self) -> tuple[FurnishedHouse, list[str]]:
        """Return the house, and the names of the added objects by their numbers.

        The numbers in the names are random: they do not reveal place, look or task.
        """
        names = [""] * len(self._pending)
        counts: dict[str, int] = {}
        for number in self.rng.permutation(len(self._pending)).tolist():
            kind = self._pending[number].kind
            counts[kind] = counts.get(kind, 0) + 1
            names[number] = numbered(kind, counts[kind])
        named = sorted(zip(names, self._pending, strict=True), key=lambda pair: pair[0])
        house = self._house(
            {name: Item(name, each.kind, each.look, each.yaw) for name, each in named},
            {name: (each.fixture, each.slot) for name, each in named},
            frozenset(name for name, each in named if self._is_dirty(each)),
            int(self.rng.integers(1 << 30)),
        )
        return house, names

    # ------------------------------------------------------------------ private helpers

    def _house(
        self,
        items: Mapping[str, Item],
        places: Mapping[str, tuple[str, int]],
        dirty: frozenset[str],
        palette: int,
    ) -> FurnishedHouse:
        """Return the house with these objects."""
        return FurnishedHouse(
            *self.layout[:3],
            fixtures=self.fixtures,
            items=items,
            places=places,
            dirty=dirty,
            palette=palette,
        )

    def _free_places(self, avoid: Collection[str], shut: bool) -> list[tuple[str, int]]:
        return [
            (name, slot)
            for name, each in self.fixtures.items()
            if self._stores(each, shut) and name not in avoid
            for slot in range(each.type.slots)
            if self._is_free(name, slot)
        ]

    def _append(
        self, kind: str, look: ItemLook | None, place: tuple[str, int], dirty: bool | None
    ) -> int:
        look = look or self.new_look(kind)
        yaw = float(self.rng.uniform(-0.25, 0.25))
        self._pending.append(_Pending(kind, look, *place, dirty, yaw))
        self._taken.add(place)
        return len(self._pending) - 1

    def _stores(self, fixture: Fixture, shut: bool) -> bool:
        if fixture.kind in NO_STORAGE or fixture.name in self.reserved:
            return False
        return fixture.kind in OPEN_STORAGE or (shut and fixture.type.slots > 1)

    def _is_free(self, name: str, slot: int) -> bool:
        """Return whether a slot is free and the fixture has another free slot."""
        used = sum(name == other for other, _ in self._taken)
        return (name, slot) not in self._taken and used + 1 < self.fixtures[name].type.slots

    def _is_dirty(self, each: _Pending) -> bool:
        if not ITEMS[each.kind].washed:
            return False
        return each.dirty if each.dirty is not None else bool(self.rng.random() < _DIRTY_SHARE)
