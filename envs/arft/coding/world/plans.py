"""Defines how often each problem occurs: the paper's numbers, and schedules that follow them.

The published test set has 10 samples of each single distortion and of clean images (simple: 70),
and 130 hard samples. The order of its rows shows that 40 of them are compositions of four kinds and
90 are details to crop. The paper's 1,200 training samples are 100 of each of these 12 (appendix B).
Only two of the four compositions are known, ``rotation90+dark`` and ``blur+noise``; the other two
are ours, chosen so that both rotations and all four defects of light and sharpness occur.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from visenv.errors import ConfigurationError, UnknownNameError
from visenv.worlds.draws import shuffled

from .kinds import KINDS, LABELS

Problems = tuple[str, ...]
"""The labels of a sample's problems, in the order in which they are applied."""

NONE: Problems = ("none",)
CROP: Problems = ("crop",)
SINGLES: tuple[Problems, ...] = (*((name,) for name in KINDS), NONE)
COMPOSITIONS: tuple[Problems, ...] = (
    ("rotation90", "dark"),
    ("rotation90", "overexposure"),
    ("rotation180", "noise"),
    ("blur", "noise"),
)

Plan = Mapping[Problems, int]
"""The number of samples with each combination of problems, at least 1."""

_STREAM = 0x9A7
"""Separates the generator of a schedule from others with the same seed."""

PLANS: Mapping[str, Plan] = {
    "train": dict.fromkeys((*SINGLES, *COMPOSITIONS, CROP), 100),
    "test": {**dict.fromkeys((*SINGLES, *COMPOSITIONS), 10), CROP: 90},
}
"""The paper's training set (1,200) and its test set (200: 70 simple, 130 hard)."""


def split_of(problems: Problems) -> Literal["simple", "hard"]:
    """Return ``"hard"`` for compositions and crops (appendix B.2.4)."""
    return "hard" if len(problems) > 1 or problems == CROP else "simple"


def named(problems: Problems) -> str:
    """Return the problems as the published files name them, for example ``"rotation90+dark"``."""
    return "+".join(problems)


def read_problems(text: str) -> Problems:
    """Parse the output of `named`.

    Raises:
        UnknownNameError: If there is no such label.
        ConfigurationError: If a label occurs twice, or ``crop`` or ``none`` is not alone.
    """
    problems = tuple(text.split("+"))
    for name in problems:
        if name not in LABELS:
            raise UnknownNameError("problem", name, LABELS)
    alone = len(problems) > 1 and {"none", "crop"} & set(problems)
    if alone or len(set(problems)) < len(problems):
        raise ConfigurationError(
            f"{text!r}: each distortion may occur once, and 'crop' and 'none' must be alone."
        )
    return problems


def without_crops(plan: Plan) -> Plan:
    """Return the plan without crops, for samples whose region is unknown."""
    return {problems: count for problems, count in plan.items() if problems != CROP}


def schedule(plan: Plan, seed: int) -> list[Problems]:
    """Return the problems of each sample of the plan, as the shortest rounds, each shuffled.

    The beginning of a schedule is therefore balanced, too: the first 12 samples of ``"train"``
    have 12 different problems.
    """
    rng = np.random.default_rng([seed, _STREAM])
    rounds = math.gcd(*plan.values())
    once = [problems for problems, count in plan.items() for _ in range(count // rounds)]
    return [problems for _ in range(rounds) for problems in shuffled(rng, once)]
