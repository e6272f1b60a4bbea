"""Implements the predicates and effects of the planning domain over the served house.

habitat-lab calls these functions with the arguments of a predicate by name
(``configs/domain.yaml``), each a `PddlEntity`, and with ``sim_info``, whose simulator is a
`ServedHouse`.
"""

from __future__ import annotations

from typing import Any

from ...world.state import HouseState


def _state(sim_info: Any) -> HouseState:
    state: HouseState = sim_info.sim.state
    return state


def is_robot_at(place: Any, robot: Any, sim_info: Any) -> bool:
    """Return whether the robot is where it can use a receptacle."""
    state = _state(sim_info)
    return state.fixture_of(place.name) == state.at


def is_reachable(item: Any, robot: Any, sim_info: Any) -> bool:
    """Return whether an object is near the robot and not inside a closed receptacle."""
    state = _state(sim_info)
    near = bool(state.at) and state.fixture_of(item.name) == state.at
    return near and not state.is_shut_in(item.name)


def is_holding(item: Any, robot: Any, sim_info: Any) -> bool:
    """Return whether the robot holds an object."""
    return bool(_state(sim_info).held == item.name)


def is_hand_empty(robot: Any, sim_info: Any) -> bool:
    """Return whether the robot holds nothing."""
    return not _state(sim_info).held


def is_in(item: Any, holder: Any, sim_info: Any) -> bool:
    """Return whether an object is directly in or on a receptacle."""
    return bool(_state(sim_info).holder_of(item.name) == holder.name)


def was_never_in(item: Any, holder: Any, sim_info: Any) -> bool:
    """Return whether an object was never put into a receptacle."""
    return (item.name, holder.name) not in _state(sim_info).delivered


def is_open(place: Any, sim_info: Any) -> bool:
    """Return whether a receptacle is open."""
    return place.name in _state(sim_info).open


def is_closed(place: Any, sim_info: Any) -> bool:
    """Return whether a receptacle is not open."""
    return place.name not in _state(sim_info).open


def is_accessible(place: Any, sim_info: Any) -> bool:
    """Return whether a receptacle has no door, or an open one."""
    state = _state(sim_info)
    return not state.house.fixtures[place.name].type.opening or place.name in state.open


def has_room(place: Any, sim_info: Any) -> bool:
    """Return whether a receptacle has a free place."""
    return _state(sim_info).free_slot(place.name) is not None


def is_not_running(place: Any, sim_info: Any) -> bool:
    """Return whether an appliance is turned off."""
    return place.name not in _state(sim_info).on


def go_to(place: Any, robot: Any, sim_info: Any) -> None:
    """Move the robot to a receptacle."""
    sim_info.sim.apply("go_to", place.name)


def pick(item: Any, robot: Any, sim_info: Any) -> None:
    """Move an object to the hand."""
    sim_info.sim.apply("pick", item.name)


def put(item: Any, holder: Any, sim_info: Any) -> None:
    """Move the object in hand to a receptacle."""
    sim_info.sim.apply("put", holder.name)


def open_up(place: Any, sim_info: Any) -> None:
    """Open a receptacle."""
    sim_info.sim.apply("open_up", place.name)


def close_up(place: Any, sim_info: Any) -> None:
    """Close a receptacle."""
    sim_info.sim.apply("close_up", place.name)
