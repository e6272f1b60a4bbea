"""The players of ai2thor that a user can choose, and the simulator with one of them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from visenv.errors import ConfigurationError
from visenv.simulators.opengl import OpenGLError, choose_backend, find_library, missing_library
from visenv.simulators.settings import IN_PROCESS, HostLimits, SimulatorSpec
from visenv.simulators.survey import PLAYER_VARIABLE

from ...options import Options
from ...presets import Preset
from .simulation import ThorWorld

TARGET = "visenv.envs.embodied.simulators.thor.simulator:ThorSimulator"
HOUSE = "house"
"""The player that serves House."""

_MODULE = "visenv.envs.embodied.simulators.thor.player"


def make_world(
    preset: Preset, options: Options, player: str, interpreter: str, host_limits: dict[str, Any]
) -> ThorWorld:
    """Return what plays tasks of House with ai2thor and the player of House.

    Raises:
        ConfigurationError: If OpenGL is missing, or an option has a value it cannot have.
    """
    check_opengl()
    path = os.pathsep.join(dict.fromkeys(str(Path(each).resolve()) for each in sys.path if each))
    spec = make_spec(
        [sys.executable, "-m", _MODULE],
        {"PYTHONPATH": path, "MUJOCO_GL": choose_backend()},
        preset,
        interpreter,
        host_limits,
    )
    return ThorWorld(spec, f"thor:{HOUSE}", options.compat is not None)


def make_spec(
    command: list[str],
    environment: dict[str, str],
    preset: Preset,
    interpreter: str,
    host_limits: dict[str, Any],
    **more: str,
) -> SimulatorSpec:
    """Return the simulator with a player.

    Args:
        command: The program of the player with its arguments.
        environment: Variables of its environment.
        preset: The frames.
        interpreter: The Python with ai2thor.
        host_limits: Fields of `HostLimits` to change.
        **more: Further options of `Player`.

    Raises:
        ConfigurationError: If an option has a value it cannot have.
    """
    if interpreter == IN_PROCESS:
        raise ConfigurationError('simulator="thor" runs in a child process, not in this one.')
    try:
        limits = HostLimits(**host_limits)
    except TypeError as error:
        raise ConfigurationError(
            f"host_limits must be fields of HostLimits, got {sorted(host_limits)}."
        ) from error
    options = {
        "command": command,
        "environment": environment,
        "server": "fifo",
        "scene": "Procedural",
        "side": preset.side,
        "quality": "Ultra" if preset.smoothing == "msaa" else "Low",
        "start_s": limits.start_s,
        "call_s": limits.call_s,
        **more,
    }
    return SimulatorSpec.of(TARGET, options, interpreter=interpreter, limits=limits)


def check_opengl() -> None:
    """Check that the player of House, which runs in this interpreter, can draw.

    Raises:
        ConfigurationError: If OpenGL is not installed; says what to install.
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
        ConfigurationError: If there is none; says what is missing.
    """
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
            "no program."
        )
    return str(Path(player).resolve())
