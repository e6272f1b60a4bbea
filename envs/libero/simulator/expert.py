"""Implements a scripted, closed-loop expert for pick-and-place goals.

In each step the expert uses only the current state, so it can take over at any time of an episode.
It plans a chunk by simulating it: it takes the actions of the next steps in the simulator, with the
255 values of text actions, and then restores the previous snapshot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import state

HALF_BINS = 127
"""The largest integer of an action in text: integers from 0 to 254 mean actions from -1 to 1."""

_GAIN = 40.0
"""Command per meter of distance; a command of 1 moves the target pose by 5 cm."""

_YAW_GAIN = 4.0
_NEAR = 0.015
_ALIGNED = 0.008
_CLEARANCE = 0.08
"""Clearance in meters between a carried object and the objects below it."""

_WIDEST = 0.072
"""Width in meters that fits between the open fingers."""

_RIM = 0.006
"""Distance in meters from the outside of a bowl to the middle of its wall."""

Row = list[int]


class ObjectShape(NamedTuple):
    """Describes the outline of an object: corners ``[corners, 3]``, lowest and highest point."""

    corners: Any
    low: Any
    high: Any

    @property
    def middle(self) -> Any:
        """Return the middle of the outline from above, ``[2]``."""
        return (self.low[:2] + self.high[:2]) / 2


class Grasp(NamedTuple):
    """Describes a grasp: position ``[3]`` of the hand and rotation about the vertical axis, rad."""

    position: Any
    yaw: float


def plan(simulator: Any, steps: int) -> list[Row]:
    """Return the next actions of the expert as rows of text, until the success.

    Args:
        simulator: The `LiberoSimulator`; its state does not change.
        steps: The number of actions.
    """
    before = simulator.snapshot()
    rows, _ = play(simulator, steps)
    state.load(simulator.env, before)
    return rows


def play(simulator: Any, steps: int) -> tuple[list[Row], bool]:
    """Take the next actions of the expert; return them as rows of text, and the success."""
    rows: list[Row] = []
    is_success = False
    while len(rows) < steps and not is_success:
        rows.append(next_row(simulator.env))
        is_success = simulator.step(decode(rows[-1]))
    return rows, is_success


def decode(row: Row) -> list[float]:
    """Return the action of a row of text."""
    return [(value - HALF_BINS) / HALF_BINS for value in row[:6]] + [2.0 * row[6] - 1.0]


def next_row(env: Any) -> Row:
    """Return the next action toward the first goal that does not hold."""
    goal = next(
        (each for each in env.parsed_problem["goal_state"] if not env._eval_predicate(each)), None
    )
    if goal is None or len(goal) != 3 or goal[1] not in env.objects_dict:
        return _command(np.zeros(3), 0.0, closed=False)
    return Carrier(env, goal[1], goal[2]).row()


class Carrier:
    """Carries an object to a target.

    Args:
        env: The LIBERO environment.
        name: The object.
        place: The target, another object or a region.
    """

    def __init__(self, env: Any, name: str, place: str) -> None:
        self.env = env
        self.name = name
        self.place = place
        robot = env.robots[0]
        data = env.sim.data
        self.hand = np.array(data.site_xpos[robot.eef_site_id])
        self.rotation = np.array(data.site_xmat[robot.eef_site_id]).reshape(3, 3)  # [3, 3]
        left, right = (float(data.qpos[each]) for each in robot._ref_gripper_joint_pos_indexes)
        self.width = left - right
        self.is_closing = bool(robot.gripper.current_action[1] > 0)
        self.shape = shape_of(env, name)
        self.target, self.top = target_of(env, place)

    def row(self) -> Row:
        """Return the next action."""
        if self._is_held():
            return self._carry()
        if self._is_placed():
            return self._leave()
        return self._fetch()

    # ------------------------------------------------------------------ phases

    def _fetch(self) -> Row:
        grasp = self.grasp()
        yaw = _yaw_error(self.rotation, grasp.yaw)
        error = grasp.position - self.hand
        aside, down = float(np.linalg.norm(error[:2])), abs(float(error[2]))
        is_there = (
            aside < 0.03 and down < 0.03 if self.is_closing else aside < 0.007 and down < 0.006
        )
        if is_there and abs(yaw) < 0.3:
            missed = self.is_closing and self.width < 0.003
            return _command([0, 0, 0.03 * missed], 0.0, closed=not missed)
        if aside < (_NEAR if down < 0.02 else _ALIGNED) and abs(yaw) < 0.2:
            return _command(error, yaw, closed=False)
        hover = max(self.shape.high[2] + 0.06, grasp.position[2] + 0.06)
        if self.hand[2] < hover - 0.02:  # rise before moving sideways
            slow = 0.3 if self.hand[2] < self.shape.high[2] + 0.01 else 1.0
            return _command([*(slow * error[:2]), hover - self.hand[2]], yaw, closed=False)
        return _command([*error[:2], hover - self.hand[2]], yaw, closed=False)

    def _carry(self) -> Row:
        error = np.zeros(3)
        error[:2] = self.target[:2] - self.shape.middle
        away = float(np.linalg.norm(error[:2]))
        bottom, top = self.shape.low[2], self.target[2]
        lowest = bottom - top
        if away > 0.02:
            level = self.top + _CLEARANCE
            error[2] = level - bottom
            if bottom < level - 0.03:  # lift before moving sideways
                error[:2] *= 0.1
            return _command(error, 0.0, closed=True)
        if lowest > 0.015:
            return _command([*error[:2], -lowest], 0.0, closed=True)
        return _command(np.zeros(3), 0.0, closed=False)

    def _leave(self) -> Row:
        return _command([0, 0, 0.04], 0.0, closed=False)

    # ------------------------------------------------------------------ measurements

    def grasp(self) -> Grasp:
        """Return the pose at which the hand closes."""
        shape = self.shape
        height = shape.high[2] - shape.low[2]
        depth = min(0.035, 0.6 * height)
        level = max(shape.high[2] - depth, shape.low[2] + 0.018)
        yaw, width = narrowest(shape.corners, _yaw(self.rotation))
        if width < _WIDEST:
            return Grasp(np.array([*shape.middle, level]), yaw)
        # The object is too wide: grasp its wall, on the side that is nearer to the hand.
        yaw = 0.0
        axis = _finger_axis(yaw)
        across = shape.corners[:, :2] @ axis
        middle = shape.middle
        radius = (across.max() - across.min()) / 2 - _RIM
        sides = [middle + radius * axis, middle - radius * axis]
        nearest = min(sides, key=lambda side: float(np.linalg.norm(side - self.hand[:2])))
        return Grasp(np.array([*nearest, shape.high[2] - 0.012]), yaw)

    def _is_held(self) -> bool:
        gripper, model = self.env.robots[0].gripper, self.env.get_object(self.name)
        if not self.is_closing or self.env._check_grasp(gripper, model):
            return self.is_closing
        # Contacts are not reliable. Fingers that press but cannot close also hold an object.
        is_blocked = gripper.current_action[1] > 0.99 and self.width > 0.005
        return is_blocked and bool(np.abs(self.grasp().position - self.hand).max() < 0.03)

    def _is_placed(self) -> bool:
        away = float(np.linalg.norm(self.target[:2] - self.shape.middle))
        near = float(np.linalg.norm(self.hand[:2] - self.shape.middle)) < 0.12
        low = self.shape.low[2] < self.target[2] + 0.05
        return away < 0.05 and near and low and self.hand[2] < self.shape.high[2] + 0.10


def shape_of(env: Any, name: str) -> ObjectShape:
    """Return the outline of an object's collision shapes."""
    model, data = env.sim.model, env.sim.data
    corners = []
    for geom in env.get_object(name).contact_geoms:
        number = model.geom_name2id(geom)
        middle, half = np.split(np.array(model._model.geom_aabb[number]), 2)
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T  # [8, 3]
        turn = np.array(data.geom_xmat[number]).reshape(3, 3)  # [3, 3]
        # [8, 3] times [3, 3]: [8, 3].
        corners.append((middle + signs * half) @ turn.T + data.geom_xpos[number])
    every = np.concatenate(corners)
    return ObjectShape(every, every.min(0), every.max(0))


def target_of(env: Any, place: str) -> tuple[Any, float]:
    """Return the target point ``[3]`` for the bottom of an object, and the height to pass over."""
    if place not in env.object_sites_dict:
        shape = shape_of(env, place)
        height = shape.high[2] - shape.low[2]
        return np.array([*shape.middle, shape.low[2] + min(height, 0.02)]), float(shape.high[2])
    position = np.array(env.sim.data.get_site_xpos(place))
    parent = env.object_states_dict[place].parent_name
    if env.get_object(parent) is None:  # a region of the table
        return position, float(position[2])
    top = float(shape_of(env, parent).high[2])
    if "contain" in place:
        position[2] = max(position[2], top - 0.04)  # the hand stays above the walls
    return position, max(top, float(position[2]))


def narrowest(corners: Any, present: float) -> tuple[float, float]:
    """Return the rotation of the hand across the narrow side of an outline, and its width."""
    best: tuple[float, float, float] | None = None
    for yaw in np.linspace(-1.2, 1.2, 25):
        across = corners[:, :2] @ _finger_axis(yaw)
        width = float(across.max() - across.min())
        cost = width + 0.004 * abs(yaw) + 0.002 * abs(yaw - present)
        if best is None or cost < best[0]:
            best = (cost, float(yaw), width)
    assert best is not None
    return best[1], best[2]


def _finger_axis(yaw: float) -> Any:
    """Return the direction in which the fingers open, in the horizontal plane."""
    return np.array([-np.sin(yaw), np.cos(yaw)])


def _yaw(rotation: Any) -> float:
    """Return the rotation of the hand about the vertical axis, 0 at the start."""
    axis = rotation[:2, 0]
    angle = float(np.arctan2(-axis[0], axis[1]))
    return (angle + np.pi / 2) % np.pi - np.pi / 2  # the hand is symmetric under a rotation by 180°


def _yaw_error(rotation: Any, wanted: float) -> float:
    error = wanted - _yaw(rotation)
    return float((error + np.pi / 2) % np.pi - np.pi / 2)


def _command(move: Any, yaw: float, *, closed: bool) -> Row:
    values = [*np.clip(_GAIN * np.asarray(move, float), -1, 1), 0.0, 0.0]
    values.append(float(np.clip(_YAW_GAIN * yaw, -1, 1)))
    return [round(HALF_BINS * float(value)) + HALF_BINS for value in values] + [int(closed)]
