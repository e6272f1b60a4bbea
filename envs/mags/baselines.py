"""Holds the prompts of the paper's baselines (§4.1), reworded.

Use them with ``--control no_tool``, which removes round 1; Zoom-Refine has both rounds. ``mags``
provides the prompts of the policies ``direct``, ``cot`` and ``zoom-refine``; ``mags-one-shot`` and
``mags-grit`` are alternative prompts for ``direct`` and ``cot``.
"""

from __future__ import annotations

from visenv.baselines import BaselinePrompts

_ANSWER = "Answer the question at once, in one word or number, inside <answer></answer> tags."
_REASON = (
    "Think about the question step by step inside <rethink></rethink> tags. Then answer it in one "
    "word or number inside <answer></answer> tags."
)
_LOOK = (
    "First give your answer in a few words. Then write the one box of the image that you would "
    "look at more closely to check it, in pixels: [x1, y1, x2, y2]."
)

PROMPTS = BaselinePrompts(answer=_ANSWER, reason=_REASON, look=_LOOK)

ONE_SHOT = BaselinePrompts(
    answer=(
        "An example. Question: How many dogs lie on the bench? Answer: <answer>2</answer>\n"
        f"Now it is your turn. {_ANSWER}"
    ),
    reason=_REASON,
    look=_LOOK,
)

GRIT = BaselinePrompts(
    answer=_ANSWER,
    reason=(
        "Think inside <rethink></rethink> tags, and write the box [x1, y1, x2, y2] of each thing "
        "that you mention into your reasoning. Then answer in one word or number inside "
        "<answer></answer> tags."
    ),
    look=_LOOK,
)
