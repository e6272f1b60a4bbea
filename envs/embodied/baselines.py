"""Holds the texts of the policies ``direct`` and ``cot`` in the embodied environments, reworded."""

from __future__ import annotations

from visenv.baselines import BaselinePrompts

PROMPTS = BaselinePrompts(
    answer="Do not reason: leave every text of the JSON object empty, and write the plan at once.",
    reason=(
        "Think step by step before you plan. Write into the texts of the JSON object what you see, "
        "what has happened so far and why, and what is left to do; then write the plan."
    ),
    look="Describe what the camera sees.",
)
