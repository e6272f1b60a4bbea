"""How much better an episode did than the others of its group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Scale = Literal["group", "none"]

EPSILON = 1e-4
"""Added to the standard deviation, as in Groundlight's and TRL's code."""


def group_relative(rewards: Sequence[float], scale: Scale = "group") -> NDArray[np.float64]:
    """Advantages of the episodes of one group: ``(r - mean) / (std + 1e-4)``.

    The standard deviation is the sample one (divisor n - 1). A group whose rewards are all equal,
    one of a single episode included, teaches nothing: its advantages are exactly 0.

    Args:
        rewards: One for each episode of the group.
        scale: ``"none"`` leaves out the division, which weights easy and hard samples up (Dr. GRPO,
            arXiv:2503.20783, section 3.1).

    Returns:
        float64 ``[episodes]``.

    Source: DeepSeekMath (arXiv:2402.03300), section 4.1.2; the 0 at no spread is Groundlight's.
    """
    values = np.asarray(rewards, np.float64)
    if len(values) < 2 or values.min() == values.max():
        return np.zeros(len(values))
    centred: NDArray[np.float64] = values - values.mean()
    return centred if scale == "none" else centred / (values.std(ddof=1) + EPSILON)
