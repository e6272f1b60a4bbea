"""Tests houses: nothing intersects or floats, and every position of the agent is reachable."""

from __future__ import annotations

import math
from collections import Counter

import cv2
import numpy as np
import pytest

from visenv.envs.embodied.world.fixtures import FIXTURES, SHELVES
from visenv.envs.embodied.world.house import Fixture, FurnishedHouse, flaws, item_box
from visenv.envs.embodied.world.items import ITEMS, SIZES, looks_of
from visenv.envs.embodied.world.tasks import TaskOptions, make_task

SEEDS = range(40)  # benchmarks/house_counts.py checks 1,000


@pytest.fixture(scope="module")
def houses() -> list[FurnishedHouse]:
    return [make_task(seed, TaskOptions()).house for seed in SEEDS]


@pytest.mark.slow
def test_layout_has_nothing_that_intersects_or_floats(houses: list[FurnishedHouse]) -> None:
    assert [flaw for house in houses for flaw in flaws(house)] == []


def test_flaw_is_found_when_there_is_one() -> None:
    house = make_task(0, TaskOptions()).house
    one, other = list(house.fixtures.values())[:2]
    moved = Fixture(one.name, one.kind, other.room, other.x, other.y, other.yaw)
    broken = FurnishedHouse(**{**vars(house), "fixtures": {**house.fixtures, one.name: moved}})
    assert any("intersects" in flaw for flaw in flaws(broken))


def test_house_has_the_promised_number_of_rooms_and_types(houses: list[FurnishedHouse]) -> None:
    for house in houses:
        assert 3 <= len(house.rooms) <= 6
        assert len(house.windows) >= 3
        assert len(house.doors) >= len(house.rooms) - 1
        assert len({each.kind for each in house.fixtures.values()}) >= 20
        counts = Counter(each.kind for each in house.items.values())
        assert len(counts) >= 35
        assert max(counts.values()) >= 2


def test_objects_fit_their_slots() -> None:
    for kind, each in ITEMS.items():
        left, front, right, back, top = item_box(kind, max(SIZES.values()))
        assert max(-left, right, -front, back) <= 0.11 + 1e-9, kind
        assert top <= 0.26, kind  # below the lowest ceiling, 0.3 m
        assert each.parts[0].color == "look"


def test_types_have_nine_appearances_of_evaluation_and_eighteen_of_training() -> None:
    for kind in ITEMS:
        train, held_out = looks_of(kind, "train"), looks_of(kind, "eval")
        assert (len(train), len(held_out)) == (18, 9)
        assert not {*train} & {*held_out}


def test_standpoints_are_reached_from_one_another(houses: list[FurnishedHouse]) -> None:
    for house in houses:
        cell, around = 0.05, 0.18
        right = max(room.right for room in house.rooms)
        back = max(room.back for room in house.rooms)
        free = np.zeros((int(back / cell) + 2, int(right / cell) + 2), np.uint8)
        for room in house.rooms:
            _fill(free, (room.left + around, room.front + around,
                         room.right - around, room.back - around), cell, 1)  # fmt: skip
        for fixture in house.fixtures.values():
            if not fixture.host:
                _fill(free, _footprint(fixture, around), cell, 0)
        for door in house.doors:
            x, y = (0.25, 0.3) if door.along_x else (0.3, 0.25)
            _fill(free, (door.x - x, door.y - y, door.x + x, door.y + y), cell, 1)
        _, labels = cv2.connectedComponents(free, connectivity=4)
        found = {
            int(labels[int(y / cell), int(x / cell)])
            for x, y in (each.standpoint for each in house.fixtures.values() if not each.host)
        }
        assert len(found) == 1
        assert 0 not in found


def _footprint(fixture: Fixture, around: float) -> tuple[float, float, float, float]:
    wide, deep = fixture.type.width / 2, fixture.type.depth / 2
    if abs(math.sin(fixture.yaw)) > 0.5:
        wide, deep = deep, wide
    return (fixture.x - wide - around, fixture.y - deep - around,
            fixture.x + wide + around, fixture.y + deep + around)  # fmt: skip


def _fill(
    grid: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    box: tuple[float, float, float, float],
    cell: float,
    value: int,
) -> None:
    left, front, right, back = (round(each / cell) for each in box)
    grid[max(0, front) : max(0, back), max(0, left) : max(0, right)] = value


def test_shelves_are_inside_of_their_fixtures() -> None:
    for kind, heights in SHELVES.items():
        assert all(0 < height <= FIXTURES[kind].height for height in heights)
        assert FIXTURES[kind].slots % len(heights) == 0
