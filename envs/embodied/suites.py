"""Defines the tables of EmbodiedBench in the Argos paper (§5.3, tables 3, 4 and 8).

Every cell of the paper's tables is a multiple of 1/150: 50 tasks of a subset, each run three times,
at temperature 0.6. `EB_ALFRED` and `EB_HABITAT` are played in House, and their results are not
comparable with published ones. The suites of the published scenes need their simulators and tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from visenv.evaluation.suite import Suite, SuiteColumn

from .world.tasks import SUBSETS

_NAMES = {
    "base": "Base",
    "common_sense": "Common",
    "complex_instruction": "Complex",
    "spatial": "Spatial",
    "visual_appearance": "Visual",
    "long_horizon": "Long",
}


def _in_house(env: str, subset: str) -> SuiteColumn:
    options = {"split": "eval", "n_shots": 10, "subset": subset}
    return SuiteColumn(_NAMES[subset], env, options=options)


def _in_scenes(env: str, data: str, options: dict[str, Any], subset: str) -> SuiteColumn:
    return SuiteColumn(_NAMES[subset], env, f"{data}:{{{data}}}?subset={subset}", options)


def _suite(title: str, make_column: Callable[[str], SuiteColumn]) -> Suite:
    columns = tuple(make_column(subset) for subset in SUBSETS)
    return Suite(
        title,
        columns,
        metric="success",
        controls=("no_vision",),
        episodes=50,
        repeats=3,
        temperature=0.6,
    )


EB_ALFRED = _suite(
    "EB-ALFRED, played in House (Argos, table 3)",
    partial(_in_house, "visenv/EBAlfred-v0"),
)
EB_HABITAT = _suite(
    "EB-Habitat, played in House (Argos, tables 4 and 8)",
    partial(_in_house, "visenv/EBHabitat-v0"),
)
EB_ALFRED_SCENES = _suite(
    "EB-ALFRED, published tasks in ALFRED's scenes (Argos, table 3)",
    partial(_in_scenes, "visenv/EBAlfred-v0", "eb_alfred", {"simulator": "thor", "n_shots": 10}),
)
EB_HABITAT_SCENES = _suite(
    "EB-Habitat, published tasks in ReplicaCAD (Argos, tables 4 and 8)",
    partial(
        _in_scenes, "visenv/EBHabitat-v0", "eb_habitat", {"simulator": "habitat", "n_shots": 10}
    ),
)
