"""Computes ANLS, average normalized Levenshtein similarity, the score of document questions.

Source: Biten et al., "Scene Text Visual Question Answering" (2019), eq. 1; DocVQA and MP-DocVQA use
it with the threshold 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence

from visenv.errors import DataError
from visenv.rewards.text import edit_similarity
from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import composed

THRESHOLD = 0.5


def anls(answer: str, references: Sequence[str], threshold: float = THRESHOLD) -> float:
    """Return the similarity to the closest reference, 0 to 1; below `threshold` it counts as 0.

    As in the script of the challenge (and in VLMEvalKit), a similarity of exactly `threshold`
    counts. Case and runs of blanks are ignored. An empty answer matches nothing, and one longer
    than `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Raises:
        DataError: If there is no reference.
    """
    if not references:
        raise DataError("An answer is compared with reference answers, and the sample has none.")
    if is_too_long(answer):
        return 0.0
    given = _normalized(answer)
    similarity = max(edit_similarity(given, _normalized(reference)) for reference in references)
    return similarity if given and similarity >= threshold else 0.0


def similarity_above(first: str, second: str, threshold: float = THRESHOLD) -> float:
    """Return the edit similarity of two texts without normalization; 0 up to `threshold`.

    MMLongBench-Doc's script leaves out a similarity of exactly `threshold`, unlike `anls`.
    """
    similarity = edit_similarity(first, second)
    return similarity if similarity > threshold else 0.0


def _normalized(text: str) -> str:
    return " ".join(composed(text).lower().split())
