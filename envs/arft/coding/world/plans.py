"""Plans how often each problem occurs: the paper's numbers, and samples shared out by them.

The published test set has 10 of each single distortion and of clean images (simple: 70), and 130
hard ones. The positions of its items tell these apart: 40 are compositions of four kinds, the other
90 are details to be cropped. Its 1,200 training samples are 100 of each of these 12 (appendix B).
Which four compositions there are is known of two, ``rotation90+dark`` and ``blur+noise``; with
ours, both rotations and all four defects of light and sharpness occur.
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
"""The labels of a sample's problems, in the order in which they came about."""

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
"""How many samples have these problems, at least 1 each."""

_STREAM = 0x9A7
"""Keeps the generator of a schedule apart from others of the same seed."""

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
    """Invert `named`.

    Raises:
        UnknownNameError: If there is no such label.
        ConfigurationError: If something comes twice, or is put together with nothing.
    """
    problems = tuple(text.split("+"))
    for name in problems:
        if name not in LABELS:
            raise UnknownNameError("problem", name, LABELS)
    alone = len(problems) > 1 and {"none", "crop"} & set(problems)
    if alone or len(set(problems)) < len(problems):
        raise ConfigurationError(
            f"{text!r}: each distortion comes once, 'crop' and 'none' come alone."
        )
    return problems


def without_crops(plan: Plan) -> Plan:
    """Return the plan without crops, for samples whose region is unknown."""
    return {problems: count for problems, count in plan.items() if problems != CROP}


def schedule(plan: Plan, seed: int) -> list[Problems]:
    """Return the problems of each sample of the plan, in the shortest rounds, each shuffled.

    So the beginning of a schedule is balanced too: the first 12 samples of ``"train"`` have one
    problem each.
    """
    rng = np.random.default_rng([seed, _STREAM])
    rounds = math.gcd(*plan.values())
    once = [problems for problems, count in plan.items() for _ in range(count // rounds)]
    return [problems for _ in range(rounds) for problems in shuffled(rng, once)]
