"""Tests frames: the same bytes everywhere, every object and state visible, ids that fit."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.environments import few
from visenv.envs.embodied.world.house import FurnishedHouse, Item
from visenv.envs.embodied.world.items import ITEMS, PATTERNS, ItemLook
from visenv.envs.embodied.world.render import HouseRenderer
from visenv.envs.embodied.world.state import HouseState, ItemPlace
from visenv.envs.embodied.world.tasks import TaskOptions, make_task

from ..houses import kitchen

pytestmark = pytest.mark.component("mujoco", "osmesa")

SIDE = 160

CODE = """
import hashlib
from visenv.envs.embodied.world.render import HouseRenderer
from visenv.envs.embodied.world.state import HouseState
from visenv.envs.embodied.world.tasks import TaskOptions, make_task
house = make_task(2, TaskOptions()).house
state = HouseState(house)
digest = hashlib.sha256()
for name in [*house.fixtures][:5]:
    state.go_to(name)
    digest.update(HouseRenderer(house).frame(state, 160).tobytes())
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def house() -> FurnishedHouse:
    return make_task(2, TaskOptions()).house


@pytest.fixture(scope="module")
def renderer(house: FurnishedHouse) -> HouseRenderer:
    return HouseRenderer(house)


def views(house: FurnishedHouse) -> str:
    state, digest = HouseState(house), hashlib.sha256()
    for name in [*house.fixtures][:5]:
        state.go_to(name)
        digest.update(HouseRenderer(house).frame(state, SIDE).tobytes())
    return digest.hexdigest()


def test_frame_is_the_same_in_any_thread_and_process(house: FurnishedHouse) -> None:
    expected = views(house)
    with ThreadPoolExecutor(3) as pool:
        assert {*pool.map(views, [house] * 4)} == {expected}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == expected


def test_frames_of_other_sizes_and_ids_between_change_nothing(
    house: FurnishedHouse, renderer: HouseRenderer
) -> None:
    state = HouseState(house)
    state.go_to(next(iter(house.items)))
    first = renderer.frame(state, SIDE)
    renderer.frame(state, 300, antialias=True)
    renderer.ids(state, 96)
    HouseRenderer(make_task(5, TaskOptions()).house).frame(
        HouseState(make_task(5, TaskOptions()).house), 128
    )
    assert np.array_equal(renderer.frame(state, SIDE), first)


def test_objects_are_visible_where_they_are_found() -> None:
    for seed in range(3):
        house = make_task(seed, TaskOptions()).house
        renderer, state = HouseRenderer(house), HouseState(house)
        for name in house.items:
            state.go_to(name)
            if state.is_shut_in(name):
                assert name not in renderer.visible(state, SIDE)
                state.open_up(state.at)
            boxes = renderer.visible(state, SIDE, pixels=6)
            assert name in boxes, (seed, name, house.places[name])
            left, top, right, bottom = boxes[name]
            # The object is near the middle of the frame.
            assert left < SIDE * 0.65, (seed, name)
            assert right > SIDE * 0.35, (seed, name)
            assert top < SIDE * 0.75, (seed, name)
            assert bottom > SIDE * 0.25, (seed, name)


def test_fixtures_are_in_the_frame_when_they_are_found(
    house: FurnishedHouse, renderer: HouseRenderer
) -> None:
    state = HouseState(house)
    for name in house.fixtures:
        state.go_to(name)
        boxes = renderer.visible(state, SIDE)
        left, top, right, bottom = boxes[name]
        assert (right - left) * (bottom - top) > 100, name


def changed(house: FurnishedHouse, renderer: HouseRenderer, name: str, state_name: str) -> int:
    """Return the number of pixels that a state changes."""
    state = HouseState(house)
    state.go_to(name)
    if name in house.items and state.is_shut_in(name):
        state.open_up(state.at)
    state.dirty.discard(name)
    before = renderer.frame(state, SIDE).astype(int)
    if state_name == "open":
        state.open_up(name)
    elif state_name == "on":
        assert state.turn(name, True) == ""
    else:
        getattr(state, state_name).add(name)
    after = renderer.frame(state, SIDE).astype(int)
    return int((np.abs(after - before).max(axis=2) > 30).sum())


def test_doors_and_switches_show_their_state(
    house: FurnishedHouse, renderer: HouseRenderer
) -> None:
    for name, fixture in house.fixtures.items():
        if fixture.type.opening:
            assert changed(house, renderer, name, "open") > 300, name
        if fixture.type.switch:
            assert changed(house, renderer, name, "on") > 60, name


@pytest.mark.parametrize("state_name", ["dirty", "hot", "cold", "sliced"])
def test_objects_show_their_states(
    house: FurnishedHouse, renderer: HouseRenderer, state_name: str
) -> None:
    ability = {"dirty": "washed", "hot": "heated", "cold": "heated", "sliced": "sliced"}[state_name]
    names = [name for name, each in house.items.items() if getattr(each.type, ability)]
    assert names
    for name in names:
        assert changed(house, renderer, name, state_name) > 8, name


def test_object_in_hand_is_seen_wherever_the_agent_goes(
    house: FurnishedHouse, renderer: HouseRenderer
) -> None:
    state = HouseState(house)
    name = next(name for name in house.items if not state.is_shut_in(name))
    state.go_to(name)
    state.pick(name)
    for fixture in house.fixtures:
        state.go_to(fixture)
        left, top, _, _ = renderer.visible(state, SIDE)[name]
        assert min(left, top) > SIDE / 2, fixture


def test_object_in_the_object_in_hand_is_carried_and_seen() -> None:
    house = kitchen()
    renderer, state = HouseRenderer(house), HouseState(house)
    state.go_to("Mug")
    state.places["Apple"] = ItemPlace("Mug", 0)
    state.pick("Mug")
    for fixture in ("Fridge", "SideTable", "Drawer"):
        state.go_to(fixture)
        boxes = renderer.visible(state, SIDE)
        apple, mug = boxes["Apple"], boxes["Mug"]
        assert apple[3] <= mug[3], fixture  # the apple ends above the foot of the mug
        assert apple[1] < mug[1], fixture
        assert mug[0] <= (apple[0] + apple[2]) / 2 <= mug[2], fixture


def test_hand_is_seen_below_an_object_that_is_held_and_never_without_one() -> None:
    house = kitchen()
    renderer, state = HouseRenderer(house), HouseState(house)
    state.go_to("Sofa")
    assert teal_pixels(renderer.frame(state, SIDE)) == 0
    state.go_to("Knife")
    state.pick("Knife")
    state.go_to("SideTable")
    assert teal_pixels(renderer.frame(state, SIDE)) > 200


def teal_pixels(frame: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> int:
    """Return the number of pixels with the hand's color: little red, green and blue about equal."""
    red, green, blue = (frame[..., channel].astype(int) for channel in range(3))
    return int(((green > 2 * red) & (abs(green - blue) < 20) & (green > 60)).sum())


@pytest.mark.parametrize("kind", few([*ITEMS], 12))
def test_pattern_is_shown_by_every_type(kind: str) -> None:
    """Check that a pattern changes at least 5 % of the pixels that show the object."""
    frames, shown = [], 0
    for pattern in PATTERNS:
        item = Item("Bowl", kind, ItemLook("red", pattern, "matte", "large"))
        house = kitchen()
        house = dataclasses.replace(house, items={**house.items, "Bowl": item})
        renderer, state = HouseRenderer(house), HouseState(house)
        state.go_to("Bowl")
        frames.append(renderer.frame(state, 224).astype(int))
        ids, names = renderer.ids(state, 224)
        shown = shown or int((ids == names.index("Bowl")).sum())
    plain, striped, dotted = frames
    for one, other in ((plain, striped), (plain, dotted), (striped, dotted)):
        assert (np.abs(one - other).max(axis=2) > 60).sum() > shown / 20


def test_objects_behind_a_wall_are_not_visible(
    house: FurnishedHouse, renderer: HouseRenderer
) -> None:
    state = HouseState(house)
    for name, fixture in house.fixtures.items():
        state.go_to(name)
        near = {fixture.room} | {room for door in house.doors if fixture.room in door.rooms
                                 for room in door.rooms}  # fmt: skip
        for seen in renderer.visible(state, SIDE):
            if seen in house.fixtures:
                assert house.fixtures[seen].room in near
