"""Contains the LIBERO environment: robot manipulation with chunks of low-level actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visenv.family import EnvEntry, Family, export_make

if TYPE_CHECKING:
    from .make import *  # noqa: F403  the public names of this package

FAMILY = Family(
    environments={
        "visenv/Libero-v0": EnvEntry(
            "visenv.envs.libero:make", "move a robot arm by chunks of actions (LIBERO, Argos)"
        ),
    },
    records={
        "LiberoTruth": "visenv.envs.libero.ground_truth:LiberoTruth",
    },
    suites={
        "libero": "visenv.envs.libero.suites:LIBERO",
    },
    recipes={
        "libero": "visenv.recipes:libero.toml",
        "libero_tiny": "visenv.recipes:libero_tiny.toml",
    },
    simulators={
        "libero": "visenv.envs.libero.survey:LIBERO",
    },
    wrappers={
        "NativeActions": "visenv.envs.libero.native:NativeActions",
    },
)

export_make(__name__)
