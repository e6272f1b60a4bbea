"""Defines the tables of EmbodiedBench in the Argos paper (§5.3, tables 3, 4 and 8).

Every cell of the paper's tables is a multiple of 1/150: 50 tasks of a subset, each run three times,
at temperature 0.6. The columns here use House; its results are not comparable with published ones.
"""

from __future__ import annotations

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
_OPTIONS = {"split": "eval", "n_shots": 10}


def _suite(title: str, env: str) -> Suite:
    columns = tuple(
        SuiteColumn(_NAMES[subset], env, options={**_OPTIONS, "subset": subset})
        for subset in SUBSETS
    )
    return Suite(
        title,
        columns,
        metric="success",
        controls=("no_vision",),
        episodes=50,
        repeats=3,
        temperature=0.6,
    )


EB_ALFRED = _suite("EB-ALFRED, played in House (Argos, table 3)", "visenv/EBAlfred-v0")
EB_HABITAT = _suite("EB-Habitat, played in House (Argos, tables 4 and 8)", "visenv/EBHabitat-v0")
