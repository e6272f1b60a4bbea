"""Defines the rewards of Argos as selections of the verifier's terms (tables 6 to 8).

================  ================================  ===============================
reward            terms                             row of the paper's ablations
================  ================================  ===============================
``argos``         accuracy, grounding, reasoning    Argos
``no_reasoning``  accuracy, grounding               -RQ
``outcome``       accuracy                          -VG (after -RQ)
``no_grounding``  accuracy, reasoning               none: our own ablation
================  ================================  ===============================

Grounding is the spatial score of images and the temporal score of videos. The maximum is 1.
"""

from __future__ import annotations

from typing import Literal

Reward = Literal["argos", "no_reasoning", "no_grounding", "outcome"]

TERMS_OF: dict[Reward, tuple[str, ...]] = {
    "argos": ("accuracy", "spatial", "temporal", "reasoning"),
    "no_reasoning": ("accuracy", "spatial", "temporal"),
    "no_grounding": ("accuracy", "reasoning"),
    "outcome": ("accuracy",),
}
