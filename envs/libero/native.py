"""Wraps the text environment with LIBERO's native spaces, for policies that output numbers."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray
from typing_extensions import override

from visenv.env import Observation
from visenv.errors import ConfigurationError

from .actions import ACTION_SIZE
from .env import Libero
from .prompts import CAMERAS

STATE_SIZE = 8
LARGEST_STATE = 10.0
"""Bound of all numbers of the state: the arm reaches 1 m, and an axis-angle has at most 2π."""

Action = NDArray[np.float64]
NativeObservation = dict[str, NDArray[Any]]


class NativeActions(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Takes one action of seven numbers per step instead of a chunk of text.

    The action space is ``Box(-1, 1, (7,), float64)``: x, y, z, roll, pitch, yaw and gripper (-1
    open, 1 closed). The observation space is ``Dict(agentview, wrist, state)``: two uint8 frames
    ``[side, side, 3]`` and float64 ``[8]``, the position of the hand (m), its rotation as an axis
    times the angle (rad) and the positions of the fingers (m). Actions are applied and saved
    without binning; actions at the centers of the text's bins give bitwise the same states as
    text. ``info`` is that of the text environment.

    Args:
        env: ``gym.make("visenv/Libero-v0", actions="native")``.

    Raises:
        ConfigurationError: If the environment has other actions.
    """

    def __init__(self, env: gym.Env[Observation, str]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, Libero) or not base.act.native:
            raise ConfigurationError(
                "NativeActions needs gym.make('visenv/Libero-v0', actions='native')."
            )
        self._base = base
        side = base.preset.frame_side
        frame = spaces.Box(0, 255, (side, side, 3), np.uint8)
        state = spaces.Box(-LARGEST_STATE, LARGEST_STATE, (STATE_SIZE,), np.float64)
        self.observation_space = spaces.Dict({**dict.fromkeys(CAMERAS, frame), "state": state})
        self.action_space = spaces.Box(-1, 1, (ACTION_SIZE,), np.float64)
        self._frames: tuple[NDArray[Any], ...] = ()

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NativeObservation, dict[str, Any]]:
        """Begin an episode; the options are those of the text environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._observe(observation), info

    @override
    def step(self, action: Action) -> tuple[NativeObservation, float, bool, bool, dict[str, Any]]:
        """Take one action.

        Raises:
            ValueError: If the action is not seven finite numbers from -1 to 1.
        """
        row = np.asarray(action, np.float64)
        if row.shape != (ACTION_SIZE,) or not np.all(np.abs(row) <= 1):
            raise ValueError(
                f"An action must be {ACTION_SIZE} numbers from -1 to 1, got {action!r}."
            )
        text = json.dumps({"values": [row.tolist()]})
        observation, reward, terminated, truncated, info = self.env.step(text)
        return self._observe(observation), float(reward), terminated, truncated, info

    def _observe(self, observation: Observation) -> NativeObservation:
        if observation["images"]:
            self._frames = observation["images"]
        state = np.array(self._base.act.facts["state"], np.float64)
        found = {name: frame.copy() for name, frame in zip(CAMERAS, self._frames, strict=True)}
        return {**found, "state": state}
