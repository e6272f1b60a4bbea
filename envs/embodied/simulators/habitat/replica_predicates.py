"""Implements functions of the planning domain over ReplicaCAD, in addition to habitat-lab's.

habitat-lab 0.3.3 cannot decide whether an object is on a receptacle: its own function treats
receptacles as boxes, which they are no longer. Its functions about the hand need the robot as an
argument, which the goals of EB-Habitat do not have.
"""

from __future__ import annotations

from typing import Any

from habitat.tasks.rearrange.multi_task.pddl_defined_predicates import (
    is_inside,
    is_robot_hold_match,
    set_robot_holding,
)

from .problem import ROBOT

_ABOVE = 0.25
"""Maximum height in meters of an object above a receptacle that it is on."""

_SHRINK = 0.8
"""Share of a receptacle on which objects are placed, as in habitat-lab."""


def _robot(sim_info: Any) -> Any:
    return sim_info.all_entities[ROBOT]


def is_holding(obj: Any, sim_info: Any) -> bool:
    """Return whether the robot holds an object."""
    return bool(is_robot_hold_match(_robot(sim_info), sim_info, True, obj))


def is_hand_empty(sim_info: Any) -> bool:
    """Return whether the robot holds nothing."""
    return bool(is_robot_hold_match(_robot(sim_info), sim_info, False))


def hold(obj: Any, sim_info: Any) -> None:
    """Put an object into the hand."""
    set_robot_holding(_robot(sim_info), sim_info, True, obj)


def release(sim_info: Any) -> None:
    """Open the hand."""
    set_robot_holding(_robot(sim_info), sim_info, False)


def is_on(obj: Any, receptacle: Any, sim_info: Any) -> bool:
    """Return whether an object is above a receptacle and not in the hand."""
    if is_holding(obj, sim_info):
        return False
    found = sim_info.receptacles[receptacle.name]
    to_receptacle = found.get_global_transform(sim_info.sim).inverted()
    position = to_receptacle.transform_point(sim_info.get_entity_pos(obj))
    low, high = found.bounds.min, found.bounds.max
    margins = (0.0, _ABOVE, 0.0)  # y points up
    return all(low[axis] - margins[axis] <= position[axis] <= high[axis] + margins[axis]
               for axis in range(3))  # fmt: skip


def is_at(obj: Any, receptacle: Any, sim_info: Any) -> bool:
    """Return whether an object is on a receptacle, or inside of one that opens."""
    if sim_info.check_type_matches(receptacle, "art_receptacle_entity_type"):
        return bool(is_inside(obj, receptacle, sim_info))
    return is_on(obj, receptacle, sim_info)


def put_on(obj: Any, receptacle: Any, sim_info: Any) -> None:
    """Put an object on a receptacle, at a random position."""
    sim = sim_info.sim
    found = sim_info.receptacles[receptacle.name]
    number = sim.scene_obj_ids[sim_info.obj_ids[obj.name]]
    thing = sim.get_rigid_object_manager().get_object_by_id(number)
    point = found.sample_uniform_global(sim, _SHRINK)
    point[1] -= thing.root_scene_node.cumulative_bb.bottom  # the lowest point is the base
    thing.translation = point
    sim.internal_step(-1)


def put_at(obj: Any, receptacle: Any, sim_info: Any) -> None:
    """Put an object on a receptacle.

    Raises:
        ValueError: If the receptacle can be opened, because EB-Habitat's skills place nothing
            there.
    """
    if receptacle.name not in sim_info.receptacles:
        raise ValueError(f"Nothing can be placed at {receptacle.name}.")
    put_on(obj, receptacle, sim_info)
