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


def few(cases: Sequence[Any], count: int) -> list[Any]:
    """Return the cases of a test for ``parametrize``; all but the first `count` are for `soak`."""
    rest = [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)
        for case in cases[count:]
    ]
    return [*cases[:count], *rest]


CHECKS_OF_SIMULATORS = few(sorted(CHECKS, key=lambda check: check.__name__ != "check_conforms"), 1)
"""The checks of the contract for a second simulator of an environment; most are for `soak`."""
