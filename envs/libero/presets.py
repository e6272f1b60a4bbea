"""Defines presets of Libero: frames, prompt and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_90", "libero_10")
"""LIBERO's suites, 130 tasks in all."""

FOUR_SUITES = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
"""The suites on which Argos trains one policy; it reports libero_10 as "Long"."""

STEP_LIMITS = {
    "libero_spatial": 220,
    "libero_object": 280,
    "libero_goal": 300,
    "libero_90": 400,
    "libero_10": 520,
}
"""Environment steps of an episode without the settling steps (openpi)."""

LEROBOT_LIMITS = {**STEP_LIMITS, "libero_spatial": 280}
"""Environment steps of an episode in LeRobot."""

SETTLING_STEPS = 10
"""Number of steps with an open gripper before the first observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiberoPreset:
    """Holds the fields of a preset.

    Attributes:
        frame_side: Side of a frame, pixels.
        frames: ``"upright"``, or ``"rotated"``: robosuite's observation, which has its lowest row
            first, rotated by 180°. Such frames are upright and mirrored left to right, as the
            checkpoints of OpenVLA, openpi and LeRobot expect them.
        prompt: ``"full"`` explains the actions; ``"brief"`` is only the task, for a tiny model.
        limits: The environment steps of each suite, those of openpi or of LeRobot.
        env_steps: Environment steps of an episode; None uses those of `limits`.
        turns: Number of turns of an episode; None sets no limit besides the environment steps and
            the malformed turns.
        invalid_actions: Number of malformed turns after which the episode is truncated.
    """

    frame_side: int = 224
    frames: Literal["upright", "rotated"] = "upright"
    prompt: Literal["full", "brief"] = "full"
    limits: Literal["openpi", "lerobot"] = "openpi"
    env_steps: int | None = None
    turns: int | None = 130
    invalid_actions: int = 10


def step_limit(preset: LiberoPreset, suite: str) -> int:
    """Return the environment steps of an episode of a suite."""
    table = LEROBOT_LIMITS if preset.limits == "lerobot" else STEP_LIMITS
    return preset.env_steps or table[suite]


PRESETS = {
    "default": LiberoPreset(),
    "vla": LiberoPreset(frames="rotated", prompt="brief", turns=None),
    "tiny": LiberoPreset(frame_side=96, prompt="brief", turns=40),
}
