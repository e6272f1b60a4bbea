"""Defines a suite, a scorer, and the texts of the baseline policies."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from visenv.baselines import BaselinePrompts
from visenv.evaluation.suite import Suite, SuiteColumn
from visenv.scorers import Generate, ScorerBackend

from .world import COLORS

SUITE = Suite(
    "Cards",
    (
        SuiteColumn("New deals", "cards/Cards-v0"),
        SuiteColumn("Decks", "cards/Cards-v0", "decks:{decks}"),
    ),
    episodes=8,
)
"""The accuracy on new deals, and on those of a file."""

PROMPTS = BaselinePrompts(
    answer="Name the color at once, inside <answer></answer> tags.",
    reason="Think about the question, then name the color inside <answer></answer> tags.",
    look="Say which card you would turn over.",
)
"""The texts of the policies `direct` and `cot`."""


class ColorJudge(ScorerBackend):
    """Replies with the color that the last message names, or with ``"none"``."""

    requests = (Generate,)

    @property
    @override
    def model(self) -> str:
        return "colors"

    @override
    async def score_batch(self, requests: Sequence[Generate]) -> Sequence[dict[str, str]]:  # type: ignore[override]
        """Return a reply to each request."""
        return [{"text": _color(request), "finish_reason": "stop"} for request in requests]


def _color(request: Generate) -> str:
    words = str(request.messages[-1].parts[-1]).lower().split()
    return next((word for word in words if word in COLORS), "none")
