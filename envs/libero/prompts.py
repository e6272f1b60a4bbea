"""Writes the prompts of Libero."""

from __future__ import annotations

from collections.abc import Mapping

from visenv.types import Image, Message, Part

CAMERAS = ("agentview", "wrist")

RULES = """\
You control a robot arm with a two-finger gripper. You see the scene from a camera in front of the \
robot ("agentview") and from a camera at its hand ("wrist").

Reply with one JSON object, {"actions": [[x, y, z, roll, pitch, yaw, gripper], ...]}, with 1 to 16 \
rows. Rows are carried out in order, 20 in a second. The first six numbers of a row are integers \
from 0 to 254: 127 does not move, 254 is the largest move in the positive direction and 0 in the \
negative direction. x points away from the robot, y to its left, z up; one step sets a goal at \
most 5 cm away, and turns by at most 0.5 rad. The gripper is 0 (open) or 1 (closed). You see new \
pictures after each reply. The episode ends when the task is done."""


def opening(task: str, frames: Mapping[str, Image], brief: bool) -> list[Message]:
    """Return the first messages: the rules, the task and the first frames."""
    request = Message("user", (*shown_frames(frames), f"Task: {task}\n"))
    return [request] if brief else [Message("system", (RULES,)), request]


def shown_frames(frames: Mapping[str, Image]) -> tuple[Part, ...]:
    """Return the frames, each under the name of its camera."""
    parts: list[Part] = []
    for name in CAMERAS:
        parts += [f"{name}:\n", frames[name], "\n"]
    return tuple(parts)


def progress(steps: int, most: int) -> str:
    """Return the number of used steps as text."""
    return f"Steps used: {steps} of {most}.\n"
