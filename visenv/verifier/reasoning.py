"""Computes P(answer | question, reasoning, images) under a teacher (Argos, eq. 5).

A reasoning that only states its answer gets a high score, whatever precedes that statement.
`hide_answer` removes the sentences that state the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

from visenv.errors import ServiceError
from visenv.grammar.points import blank_points
from visenv.types import Sample
from visenv.verifier.outcome import LETTER, option_named, options_of
from visenv.verifier.teachers import Reasoner

Mean = Literal["geometric", "product"]

_SENTENCE = re.compile(r"[^.!?\n]*+(?:[.!?](?!\s|$)[^.!?\n]*+)*+(?:[.!?]+|\n|$)")


async def reasoning_score(
    sample: Sample,
    reasoning: str,
    answer: str,
    reasoner: Reasoner,
    *,
    mean: Mean = "geometric",
    mask_answer: bool = False,
) -> float:
    """Return the probability of an answer given a reasoning, 0 to 1.

    Args:
        sample: Question and images.
        reasoning: The reasoning of the response; an empty one scores 0.
        answer: The answer of the response; an empty one scores 0.
        reasoner: The teacher that scores the answer.
        mean: ``"geometric"`` is the mean probability of a token, which does not depend on the
            length of the answer; ``"product"`` is the probability of the answer.
        mask_answer: Whether sentences that state the answer are hidden from the teacher.

    Raises:
        ServiceError: If the teacher failed, or returned an invalid log-probability.
    """
    if not answer.strip() or not reasoning.strip():
        return 0.0
    shown = reasoning
    if mask_answer:
        shown = hide_answer(reasoning, answer, options_of(sample))
    return probability(await reasoner.log_probabilities(sample, shown, answer), mean)


def probability(log_probabilities: Sequence[float], mean: Mean = "geometric") -> float:
    """Return the geometric mean, or the product, of token probabilities.

    Raises:
        ServiceError: If the list is empty, or a value is NaN or above 0 by more than rounding
            errors.
    """
    if not log_probabilities or not all(value <= 1e-3 for value in log_probabilities):
        raise ServiceError("reasoner", f"expected log-probabilities, got {log_probabilities!r:.80}")
    total = math.fsum(log_probabilities)
    return min(1.0, math.exp(total if mean == "product" else total / len(log_probabilities)))


def hide_answer(reasoning: str, answer: str, options: Sequence[str] = ()) -> str:
    """Return a reasoning without the sentences that state the answer.

    A sentence states an answer if it contains the text of the answer as whole words, in upper or
    lower case. If the answer selects an option, the sentence states it by the text of that option,
    or by its letter as written in a list: ``(B)``, ``B.``, ``B)`` or ``B:``. A letter alone does
    not count, because it is often the article "a". Points are ignored: a sentence that points to a
    "red cup" does not state the answer "red".

    Args:
        reasoning: The reasoning.
        answer: The answer, for example ``"red"``, ``"B"`` or ``"B. red"``.
        options: All options, if there is a choice.
    """
    states = _statements(answer, options)
    seen = blank_points(reasoning)
    return "".join(
        reasoning[found.start() : found.end()]
        for found in _SENTENCE.finditer(seen)
        if not any(each.search(found[0]) for each in states)
    )


def _statements(answer: str, options: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the patterns of a sentence that states an answer."""
    text = answer.strip().removesuffix(".")
    letter = ""
    number = option_named(answer, options)
    if number is not None:
        text, letter = options[number], chr(ord("A") + number)
    elif lettered := LETTER.fullmatch(text):
        letter, text = lettered[1].upper(), lettered[2]
    patterns: list[re.Pattern[str]] = []
    if text.strip():
        words = r"\s+".join(map(re.escape, text.split()))
        patterns.append(re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE))
    if letter:
        patterns.append(re.compile(rf"(?<!\w)\(?{letter}\)?[.):]"))
    return patterns
