"""Contains the environments for embodied planning: House, EB-ALFRED and EB-Habitat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visenv.family import EnvEntry, Family, export_make

if TYPE_CHECKING:
    from .make import *  # noqa: F403  the public names of this package

FAMILY = Family(
    environments={
        "visenv/House-v0": EnvEntry(
            "visenv.envs.embodied:make_house", "plan and act in a procedural house (EmbodiedBench)"
        ),
        "visenv/EBAlfred-v0": EnvEntry(
            "visenv.envs.embodied:make_eb_alfred",
            "household tasks with the actions of ALFRED, in House",
        ),
        "visenv/EBHabitat-v0": EnvEntry(
            "visenv.envs.embodied:make_eb_habitat", "rearrangement tasks as in EB-Habitat, in House"
        ),
    },
    data={
        "eb_alfred": "visenv.envs.embodied.datasets.eb_alfred:EBAlfredTasks",
        "eb_habitat": "visenv.envs.embodied.datasets.eb_habitat:EBHabitatTasks",
    },
    records={
        "PublishedTruth": "visenv.envs.embodied.datasets.published:PublishedTruth",
        "HouseTruth": "visenv.envs.embodied.ground_truth:HouseTruth",
        "Goal": "visenv.envs.embodied.world.goals:Goal",
        "Clause": "visenv.envs.embodied.world.goals:Clause",
        "Fact": "visenv.envs.embodied.world.goals:Fact",
    },
    suites={
        "eb-alfred": "visenv.envs.embodied.suites:EB_ALFRED",
        "eb-alfred-scenes": "visenv.envs.embodied.suites:EB_ALFRED_SCENES",
        "eb-habitat": "visenv.envs.embodied.suites:EB_HABITAT",
        "eb-habitat-scenes": "visenv.envs.embodied.suites:EB_HABITAT_SCENES",
    },
    recipes={
        "embodied": "visenv.recipes:embodied.toml",
        "embodied_tiny": "visenv.recipes:embodied_tiny.toml",
    },
    simulators={
        "habitat-lab": "visenv.envs.embodied.simulators.survey:HABITAT",
        "ai2thor": "visenv.envs.embodied.simulators.survey:THOR",
    },
    baselines={
        "embodied": "visenv.envs.embodied.baselines:PROMPTS",
    },
)

export_make(__name__)
