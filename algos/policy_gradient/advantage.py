"""Computes the advantages of episodes or turns relative to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Scale = Literal["group", "batch", "none"]

EPSILON = 1e-4
"""The constant that is added to the standard deviation, as in Groundlight's and TRL's code."""


def group_relative(groups: Sequence[ArrayLike], scale: Scale = "group") -> list[Floats]:
    """Return ``(r - mean) / (std + 1e-4)``, with the mean of the group.

    The divisor of the variance is n - 1. If all rewards of a group are equal, also if there is only
    one reward, its advantages are exactly 0.

    Args:
        groups: The rewards of each group of a step, one for each episode (or turn).
        scale: The standard deviation by which advantages are divided: that of the ``"group"``, that
            of the ``"batch"`` (all groups), or ``"none"``. Division by that of the group gives easy
            and hard samples more weight (Dr. GRPO, arXiv:2503.20783, section 3.1).

    Returns:
        A float64 array for each group, of the length of the group.

    Source: DeepSeekMath (arXiv:2402.03300), section 4.1.2; the 0 for equal rewards: Groundlight.
    """
    values = [np.asarray(group, np.float64) for group in groups]
    if scale == "none":
        return [_centered(each) for each in values]
    whole = np.concatenate(values) if scale == "batch" else None
    return [
        _centered(each) / (_deviation(each if whole is None else whole) + EPSILON)
        for each in values
    ]


def leave_one_out(rewards: ArrayLike) -> Floats:
    """Return ``r - mean of the other rewards``, float64 ``[episodes]``; 0 for a single reward.

    Source: RLOO (arXiv:2402.14740), section 3.2.
    """
    centered = _centered(np.asarray(rewards, np.float64))
    return centered * (len(centered) / max(len(centered) - 1, 1))


def whitened(values: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return ``(v - mean) / sqrt(variance + 1e-8)``, where each value is weighted by `counts`.

    Args:
        values: float64 ``[turns]``, the values of a whole step.
        counts: int64 ``[turns]``, the number of sampled tokens with each value.

    Returns:
        float64 ``[turns]``; exactly 0 if all tokens have the same value.

    Source: REINFORCE++ (arXiv:2501.03262), section 3; the variance (divisor tokens - 1) and the
    constant 1e-8 are those of verl.
    """
    counted = values[counts > 0]
    if len(counted) == 0 or counted.min() == counted.max():
        return np.zeros(len(values))
    centered: Floats = values - np.average(values, weights=counts)
    variance = (counts * centered**2).sum() / (counts.sum() - 1)
    return centered / float(np.sqrt(variance + 1e-8))


def _centered(values: Floats) -> Floats:
    if len(values) < 2 or values.min() == values.max():
        return np.zeros(len(values))
    centered: Floats = values - values.mean()
    return centered


def _deviation(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0
