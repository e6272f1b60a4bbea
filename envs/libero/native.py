"""Wraps the text environment with LIBERO's native spaces, for policies that output numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from visenv.env import Observation
from visenv.errors import ConfigurationError
from visenv.exports.video import write_video
from visenv.presets import check_choice
from visenv.spaces import Unicode
from visenv.types import Pixels, StepResult

from .actions import ACTION_SIZE, MOST_NATIVE_ROWS
from .env import Libero
from .prompts import CAMERAS
from .tools import STEPS_PER_SECOND

STATE_SIZE = 8
LARGEST_STATE = 10.0
"""Bound of all numbers of the state: the arm reaches 1 m, and an axis-angle has at most 2π."""

Keys = Literal["visenv", "openpi", "lerobot"]
NativeObservation = dict[str, Any]


class ObservationKeys(NamedTuple):
    """Names the entries of an observation: the frames of the cameras, the state and the task."""

    agentview: str
    wrist: str
    state: str
    instruction: str


KEYS: Mapping[str, ObservationKeys] = MappingProxyType(
    {
        "visenv": ObservationKeys("agentview", "wrist", "state", "instruction"),
        "openpi": ObservationKeys(
            "observation/image", "observation/wrist_image", "observation/state", "prompt"
        ),
        "lerobot": ObservationKeys(
            "observation.images.image", "observation.images.image2", "observation.state", "task"
        ),
    }
)
"""The keys of an observation by the name of the option: those of openpi's server and of the
policies of LeRobot."""


class NativeActions(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Takes actions of seven numbers instead of text: one action, or a chunk of them, per step.

    The action space is ``Box(-1, 1, (7,), float64)``: x, y, z, roll, pitch, yaw and gripper (-1
    open, 1 closed). `step` also takes a chunk ``[k, 7]``, which it executes in order until the goal
    holds or the step limit is reached; frames are rendered only at its end. Larger numbers are
    clipped to [-1, 1], as robosuite does. Actions are applied and saved without binning; actions at
    the centers of the text's bins give bitwise the same states as text.

    The observation space is ``Dict(agentview, wrist, state, instruction)``: two uint8 frames
    ``[side, side, 3]``, float64 ``[8]`` (the position of the hand in m, its rotation as an axis
    times the angle in rad, and the positions of the fingers in m) and the task as text. `keys`
    selects the names of openpi or LeRobot. ``info`` is that of the text environment.

    An episode ends with the goal or after the environment steps of its suite. The preset's limit of
    turns does not apply, unless ``gym.make`` is called with ``turns``.

    Args:
        env: ``gym.make("visenv/Libero-v0", actions="native")``.
        keys: The names of the entries of an observation, see `KEYS`. The policies of openpi and
            LeRobot expect ``frames="rotated"``.

    Raises:
        ConfigurationError: If the environment has other actions, or `keys` are those of openpi or
            LeRobot and the frames are not rotated.
    """

    def __init__(self, env: gym.Env[Observation, str], keys: Keys = "visenv") -> None:
        RecordConstructorArgs.__init__(self, keys=keys)
        gym.Wrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, Libero) or not base.act.native:
            raise ConfigurationError(
                "NativeActions needs gym.make('visenv/Libero-v0', actions='native')."
            )
        check_choice("keys", keys, tuple(KEYS))
        if keys != "visenv" and base.preset.frames != "rotated":
            raise ConfigurationError(
                f"The policies that use keys={keys!r} were trained on rotated frames; make the "
                "environment with frames='rotated', or with preset='vla'."
            )
        self._base = base
        self._keys = KEYS[keys]
        side = base.preset.frame_side
        frame = spaces.Box(0, 255, (side, side, 3), np.uint8)
        state = spaces.Box(-LARGEST_STATE, LARGEST_STATE, (STATE_SIZE,), np.float64)
        names = self._keys
        self.observation_space = spaces.Dict(
            {
                names.agentview: frame,
                names.wrist: frame,
                names.state: state,
                names.instruction: Unicode(),
            }
        )
        self.action_space = spaces.Box(-1, 1, (ACTION_SIZE,), np.float64)
        self._frames: tuple[Pixels, ...] = ()
        self._film: list[tuple[float, Pixels]] = []

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NativeObservation, dict[str, Any]]:
        """Begin an episode; the options are those of the text environment."""
        observation, info = self.env.reset(seed=seed, options=options)
        found = self._observe(observation)
        self._film = [] if self._base.act.record == "none" else [(0.0, np.hstack(self._frames))]
        return found, info

    @override
    def step(
        self, action: ArrayLike
    ) -> tuple[NativeObservation, float, bool, bool, dict[str, Any]]:
        """Take one action ``[7]``, or a chunk of actions ``[k, 7]``.

        Raises:
            ValueError: If the shape is another one, or a number is NaN.
        """
        rows = _rows(action)
        observation, reward, terminated, truncated, info = self.env.step(
            json.dumps({"values": rows.tolist()})
        )
        self._add_to_film(info["step"])
        return self._observe(observation), float(reward), terminated, truncated, info

    def save_video(self, path: str | Path) -> Path:
        """Write the frames of the current or last episode as a video, and return its path.

        The two cameras are side by side, as the policy sees them, at the speed of the robot. With
        ``record="actions"`` there is a frame after each action, with ``record="turns"`` one after
        each step of this environment.

        Args:
            path: ``*.mp4`` or ``*.webp``.

        Raises:
            ConfigurationError: If the environment records no frames, there is no episode, or the
                file cannot be written (`write_video`).
        """
        if not self._film:
            raise ConfigurationError(
                "save_video needs an episode of gym.make('visenv/Libero-v0', actions='native', "
                "record='turns') or record='actions'; call reset first."
            )
        times, frames = zip(*self._film, strict=True)
        return write_video(path, frames, times, STEPS_PER_SECOND)

    def _add_to_film(self, result: StepResult) -> None:
        videos = result.hidden_frames
        if not videos:
            return
        for number, time in enumerate(videos[0].times):
            frames = [video.frames[number].pixels for video in videos]
            self._film.append((time, np.hstack(frames)))

    def _observe(self, observation: Observation) -> NativeObservation:
        if observation["images"]:
            self._frames = observation["images"]
        names = self._keys
        frames = zip(CAMERAS, self._frames, strict=True)
        return {
            **{getattr(names, camera): frame.copy() for camera, frame in frames},
            names.state: np.array(self._base.act.facts["state"], np.float64),
            names.instruction: self._base.sample.question,
        }


def _rows(action: ArrayLike) -> NDArray[np.float64]:
    """Return the actions of a step, clipped, ``[k, 7]``."""
    rows = np.atleast_2d(np.asarray(action, np.float64))
    is_chunk = rows.ndim == 2 and 0 < len(rows) <= MOST_NATIVE_ROWS
    if not is_chunk or rows.shape[1] != ACTION_SIZE or np.isnan(rows).any():
        raise ValueError(
            f"An action must be {ACTION_SIZE} numbers, or a chunk [k, {ACTION_SIZE}] with k from 1 "
            f"to {MOST_NATIVE_ROWS}, without NaN; got the shape {np.shape(action)}: "
            f"{str(action)[:200]}"
        )
    return np.clip(rows, -1, 1)
