"""Computes edit similarity: partial credit for an answer that is similar to a reference."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import Literal

from visenv.errors import DataError
from visenv.rewards.vqa import comparable_answer, is_too_long, normalize_answer


def edit_similarity(first: str, second: str) -> float:
    """Return ``1 - Levenshtein(first, second) / max(len(first), len(second))``, 0 to 1.

    Lengths are in code points, and the texts are not normalized. Equal texts give 1, also if they
    are empty.
    """
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.normalized_similarity(first, second)


def soft_score(
    answer: str,
    references: Sequence[str],
    best: int = 3,
    compat: Literal["r1_vlm"] | None = None,
) -> float:
    """Return R_e of Groundlight's paper: mean edit similarity to the `best` references, 0 to 1.

    The answer and the references are first normalized as for the VQA score
    (`visenv.rewards.vqa.comparable_answer`), so that the two scores never contradict each other.
    With fewer than `best` references, the mean is over all of them. An answer longer than
    `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Args:
        answer: The answer of the policy.
        references: The accepted answers; TextVQA has ten.
        best: The number of most similar references to average over.
        compat: ``"r1_vlm"`` normalizes as the public code: articles alone become empty
            (`visenv.rewards.vqa.normalize_answer`). An empty text has a similarity of 0 to every
            text in both cases.

    Raises:
        DataError: If there is no reference.
    """
    if not references:
        raise DataError("An answer is compared with reference answers, and the sample has none.")
    if is_too_long(answer):
        return 0.0
    form = normalize_answer if compat else comparable_answer
    given = form(answer)
    similarities = [
        edit_similarity(given, reference) if given or reference else 0.0
        for reference in map(form, references)
    ]
    closest = nlargest(best, similarities)
    return sum(closest) / len(closest)
