"""Tests the rules of a house by hand, on a small one."""

from __future__ import annotations

import pytest

from tests.envs.embodied.houses import kitchen
from visenv.envs.embodied.world.state import HouseState


@pytest.fixture
def state() -> HouseState:
    return HouseState(kitchen())


def carry(state: HouseState, item: str, holder: str) -> str:
    state.go_to(item)
    assert state.pick(item) == ""
    state.go_to(holder)
    return state.put(holder)


def test_object_out_of_reach_is_not_picked_up(state: HouseState) -> None:
    assert state.pick("Mug") == "not_near"
    state.go_to("Bowl")
    assert state.pick("Mug") == "not_near"
    state.go_to("Mug_2")
    assert state.pick("Mug") == ""
    assert state.held == "Mug"


def test_full_hand_picks_up_nothing(state: HouseState) -> None:
    state.go_to("Mug")
    state.pick("Mug")
    assert state.pick("Mug_2") == "hand_full"


def test_closed_cabinet_keeps_objects_out_of_reach_until_it_is_open(state: HouseState) -> None:
    state.go_to("Book")
    assert (state.at, state.pick("Book")) == ("Cabinet", "shut_in")
    assert state.open_up("Cabinet") == ""
    assert state.focus == "Book"
    assert state.open_up("Cabinet") == "already_open"
    assert state.pick("Book") == ""


def test_closed_receptacle_takes_no_object(state: HouseState) -> None:
    assert carry(state, "Mug", "Fridge") == "closed"
    state.open_up("Fridge")
    assert state.put("Fridge") == ""
    assert state.holder_of("Mug") == "Fridge"


def test_microwave_heats_only_when_it_is_turned_on_with_its_door_shut(state: HouseState) -> None:
    state.go_to("Apple")
    state.pick("Apple")
    state.go_to("Microwave")
    state.open_up("Microwave")
    state.put("Microwave")
    assert state.turn("Microwave", True) == "is_open"
    state.close_up("Microwave")
    assert state.hot == set()
    assert state.turn("Microwave", True) == ""
    assert state.hot == {"Apple"}
    assert state.open_up("Microwave") == "is_on"
    assert state.turn("Microwave", False) == ""
    assert state.open_up("Microwave") == ""


def test_fridge_cools_what_it_holds_when_it_is_closed_and_heat_is_lost(state: HouseState) -> None:
    state.hot.add("Apple")
    state.go_to("Fridge")
    state.open_up("Fridge")
    carry(state, "Apple", "Fridge")
    assert state.cold == set()
    state.close_up("Fridge")
    assert (state.cold, state.hot) == ({"Apple"}, set())


def test_faucet_washes_what_is_in_its_sink(state: HouseState) -> None:
    assert state.dirty == {"Mug"}
    carry(state, "Mug", "Sink")
    assert state.turn("Faucet", True) == ""
    assert state.dirty == set()


def test_slicing_needs_a_knife_in_hand(state: HouseState) -> None:
    state.go_to("Apple")
    assert state.slice("Apple") == "no_knife"
    state.pick("Knife")
    assert state.slice("Mug") == "not_sliceable"
    assert state.slice("Apple") == ""
    assert state.slice("Apple") == "already_sliced"


def test_object_in_a_bowl_is_carried_with_it_and_heated_with_it(state: HouseState) -> None:
    assert carry(state, "Apple", "Bowl") == ""
    state.go_to("Bowl")
    state.pick("Bowl")
    state.go_to("Microwave")
    state.open_up("Microwave")
    state.put("Microwave")
    state.close_up("Microwave")
    state.turn("Microwave", True)
    assert state.hot == {"Apple", "Bowl"}
    assert state.fixture_of("Apple") == "Microwave"
    assert state.all_contents("Microwave") == ["Bowl", "Apple"]


def test_receptacle_that_is_full_takes_nothing_more(state: HouseState) -> None:
    assert carry(state, "Mug", "SideTable") == ""
    assert carry(state, "Mug_2", "SideTable") == "full"
    assert state.held == "Mug_2"


def test_dropped_object_lies_on_the_floor_and_can_be_found_there(state: HouseState) -> None:
    state.go_to("Book")
    state.open_up("Cabinet")
    state.pick("Book")
    state.close_up("Cabinet")
    assert state.drop() == ""
    assert not state.is_shut_in("Book")
    state.go_to("Sofa")
    state.go_to("Book")
    assert state.pick("Book") == ""


def test_copy_shares_nothing(state: HouseState) -> None:
    other = state.copy()
    carry(state, "Mug", "SideTable")
    state.open.add("Fridge")
    assert (other.holder_of("Mug"), other.open, other.delivered) == ("Sofa", set(), set())
