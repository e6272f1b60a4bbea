"""Holds prompts for the baselines of Visual-ARFT (arXiv 2505.14246, table 4, A.2), reworded."""

from __future__ import annotations

from visenv.baselines import BaselinePrompts

PROMPTS = BaselinePrompts(
    answer="Answer the question at once, in a few words, inside <answer></answer> tags.",
    reason=(
        "Think about the question step by step inside <think></think> tags. Then answer it in a "
        "few words inside <answer></answer> tags."
    ),
    look="Do not answer yet. In a few words: who or what does the image show?",
)
