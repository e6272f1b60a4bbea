"""Finds the player of ai2thor that a user chose, and creates the simulator with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from visenv.errors import ConfigurationError
from visenv.received import require_trust
from visenv.simulators.opengl import OpenGLError, choose_backend, find_library, missing_library
from visenv.simulators.settings import IN_PROCESS, HostLimits, SimulatorSpec

from ...presets import EmbodiedOptions, EmbodiedPreset
from ...simulation import EpisodeRunner
from ..survey import PLAYER_VARIABLE
from .published import PublishedRunner
from .simulation import ThorRunner

TARGET = "visenv.envs.embodied.simulators.thor.simulator:ThorSimulator"
HOUSE = "house"
"""The player that serves House."""

_MODULE = "visenv.envs.embodied.simulators.thor.player"


class ThorOptions(NamedTuple):
    """Holds the options of ``simulator="thor"``.

    Attributes:
        player: ``"house"``, or the program of a Unity player.
        server: ``"wsgi"`` or ``"fifo"``: the protocol of a Unity player.
        interpreter: The Python with ai2thor.
        host_limits: Fields of `HostLimits` to change.
    """

    player: str
    server: str
    interpreter: str
    host_limits: dict[str, Any]

    @property
    def name(self) -> str:
        """Return the name of the simulator and its player."""
        return f"thor:{Path(self.player).name}"

    def runner(self, preset: EmbodiedPreset, options: EmbodiedOptions) -> EpisodeRunner:
        """Return the runner of the episodes.

        Raises:
            ConfigurationError: If OpenGL or a display is missing, or the value of an option is
                invalid.
        """
        forgets = options.compat is not None
        if self.player == HOUSE:
            return ThorRunner(self._spec_of_house(preset), self.name, forgets)
        if options.boxes:
            raise ConfigurationError(
                "boxes=True is possible with the player of House only, because the ids of a Unity "
                f"player are not read, got player={self.player!r}: set boxes=False."
            )
        return PublishedRunner(self._spec_of_unity(preset), self.name, forgets)

    def _spec_of_house(self, preset: EmbodiedPreset) -> SimulatorSpec:
        """Return the simulator with the player of House, which runs in this interpreter."""
        check_opengl()
        path = os.pathsep.join(
            str(Path(each).resolve()) for each in dict.fromkeys(sys.path) if each
        )
        player = {
            "command": [sys.executable, "-m", _MODULE],
            "environment": {"PYTHONPATH": path, "MUJOCO_GL": choose_backend()},
            "server": "fifo",
            "scene": "Procedural",
        }
        return self._spec(player, preset)

    def _spec_of_unity(self, preset: EmbodiedPreset) -> SimulatorSpec:
        if sys.platform == "linux" and not os.environ.get("DISPLAY"):
            raise ConfigurationError(
                "A Unity player draws on an X display, and DISPLAY is not set. Start one, for "
                "example with ai2thor-xorg or Xvfb, and set DISPLAY."
            )
        player = {
            "command": [self.player],
            "environment": {},
            "server": self.server,
            "scene": "FloorPlan1",
        }
        return self._spec(player, preset)

    def _spec(self, player: dict[str, Any], preset: EmbodiedPreset) -> SimulatorSpec:
        if self.interpreter == IN_PROCESS:
            raise ConfigurationError(
                'simulator="thor" runs in a child process, got '
                f"interpreter={self.interpreter!r}: omit it, or name a Python program."
            )
        limits = HostLimits.with_changes(self.host_limits)
        options = {
            **player,
            "side": preset.side,
            "quality": "Ultra" if preset.smoothing == "msaa" else "Low",
            "start_s": limits.start_s,
            "call_s": limits.call_s,
        }
        return SimulatorSpec.of(TARGET, options, interpreter=self.interpreter, limits=limits)


def check_opengl() -> None:
    """Check that the player of House can use OpenGL in this interpreter.

    Raises:
        ConfigurationError: If OpenGL is not installed; the message names the packages.
    """
    try:
        backend = choose_backend()
    except OpenGLError as error:
        raise ConfigurationError(str(error)) from error
    if backend != "glfw" and find_library(backend) is None:
        raise ConfigurationError(f"The player of House cannot draw. {missing_library(backend)}")


def find_player(option: str) -> str:
    """Return the player: ``"house"``, or the program of a Unity player.

    Raises:
        UntrustedNameError: If a received file gives the program (`visenv.received`).
        ConfigurationError: If there is none; the message names the missing option.
    """
    if option not in ("", HOUSE):
        require_trust("player", str(option), [str(option)])
    player = option or os.environ.get(PLAYER_VARIABLE, "")
    if player == HOUSE:
        return HOUSE
    if not player:
        raise ConfigurationError(
            'simulator="thor" needs a player: player="house" serves House; for ALFRED\'s scenes, '
            "give the path of the Unity player of AI2-THOR 2.1.0 as player=, or set "
            f"{PLAYER_VARIABLE}."
        )
    if not os.access(player, os.X_OK) or Path(player).is_dir():
        raise ConfigurationError(
            f'player must be "house" or the program of a Unity player, got {player!r}, which is '
            "not a program."
        )
    return str(Path(player).resolve())
