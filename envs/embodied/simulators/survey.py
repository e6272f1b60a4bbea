"""Lists the parts of habitat-lab and ai2thor that `visenv doctor` looks for."""

from __future__ import annotations

from visenv.simulators.survey import SimulatorParts

PLAYER_VARIABLE = "VISENV_THOR_PLAYER"
"""Environment variable with the Unity player of AI2-THOR."""

HABITAT = SimulatorParts(
    packages=("habitat-lab",),
    others=("habitat-sim", "numpy"),
    modules=("magnum", "corrade", "habitat_sim"),
    without_modules="habitat-lab gets placeholders for them in its child process (habitat-sim: "
    "conda, aihabitat)",
)

THOR = SimulatorParts(
    packages=("ai2thor",),
    others=("numpy",),
    program="Unity player of AI2-THOR",
    program_variable=PLAYER_VARIABLE,
    without_program=f'set {PLAYER_VARIABLE} to play ALFRED\'s scenes; player="house" needs none',
)
