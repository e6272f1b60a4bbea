"""Lists the ids of all environments and the checks of the contract, as cases of tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from visenv.registration import ENVIRONMENTS
from visenv.testing.contract import CHECKS

IDS = [name for name in ENVIRONMENTS if name != "visenv/Libero-v0"]
"""All ids except Libero.

Its simulator takes a second where others take a millisecond, and 2 GiB. Libero has its own tests,
and the checks of the contract are run by hand for it (docs/libero.md).
"""


VARIANTS = frozenset({"visenv/ArmPreference-v0", "visenv/ArmDocVQA-v0", "visenv/EBHabitat-v0"})
"""Ids whose grammar, tools and episodes are those of other ids.

ArmPreference is an ArmZoom, ArmDocVQA has the pages of ArmDoc and the answers of ArmVQA, and
EBHabitat differs from EBAlfred in its skills.
"""


NEEDED = {
    "visenv/MagsZoom-v0": ("torch",),
    "visenv/House-v0": ("mujoco", "osmesa"),
    "visenv/EBAlfred-v0": ("mujoco", "osmesa"),
    "visenv/EBHabitat-v0": ("mujoco", "osmesa"),
}
"""The components of extras that ids need, to be made or for frames."""


def with_components(cases: Sequence[str], *components: str) -> list[Any]:
    """Return ids for ``parametrize``, with marks for those of `components` that they need."""
    return [
        pytest.param(case, marks=pytest.mark.component(*needed)) if needed else case
        for case in cases
        for needed in [[each for each in NEEDED.get(case, ()) if each in components]]
    ]


def few(cases: Sequence[Any], count: int) -> list[Any]:
    """Return the cases of a test for ``parametrize``; all but the first `count` are for `soak`."""
    rest = [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
        for case in cases[count:]
    ]
    return [*cases[:count], *rest]


CHECKS_OF_SIMULATORS = few(sorted(CHECKS, key=lambda check: check.__name__ != "check_conforms"), 1)
"""The checks of the contract for a second simulator of an environment; most are for `soak`."""
