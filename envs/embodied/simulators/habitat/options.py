"""Makes a `HabitatWorld` of the options of an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from visenv.errors import ConfigurationError
from visenv.simulators.settings import HostLimits, SimulatorSpec

from ...options import Options
from ...presets import Preset
from ...world.render.renderer import ANTIALIASING
from .player import TARGET, HabitatWorld


def make_habitat_world(
    interpreter: str, host_limits: Mapping[str, Any], preset: Preset, options: Options
) -> HabitatWorld:
    """Return habitat-lab over House. It is started by the first reset.

    Args:
        interpreter: The Python with habitat-lab, ``""`` for that of the simulators.
        host_limits: Fields of `HostLimits` to change.
        preset: The frames.
        options: Whether frames are shown at all.

    Raises:
        ConfigurationError: If `HostLimits` has no such field.
    """
    try:
        limits = HostLimits(**host_limits)
    except TypeError as error:
        raise ConfigurationError(
            f"host_limits must be fields of HostLimits, got {sorted(host_limits)}."
        ) from error
    side = 0 if options.blind or options.language_only else preset.side
    camera = {"side": side, "samples": ANTIALIASING if preset.smoothing == "msaa" else 0}
    spec = SimulatorSpec.of(TARGET, camera, interpreter=interpreter, limits=limits)
    return HabitatWorld(spec, side)
