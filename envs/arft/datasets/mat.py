"""Implements the parts that both MAT data sets share (Visual-ARFT, arXiv 2505.14246).

Both are on the hub as ``laolao77/MAT``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, RowSource
from visenv.errors import DataError
from visenv.types import Episode, Image, Sample

from ..rewards.qa import Compat, token_f1
from .splits import split_scores

ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
"""Matches the answer in a solution of the training sets."""


class MatSource(RowSource):
    """Loads questions about one image each, scored by F1 and reported by split."""

    def score(self, answer: str, sample: Sample, compat: Compat = None) -> float:
        """Return token F1 of the answer, 0 to 1."""
        return token_f1(answer, sample.answers, compat)

    def totals(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Return F1 and exact match by split, as in the paper's tables; every row counts."""
        return split_scores(episodes, self.left_out)

    @override
    def open_images(self, place: RowLocation, images: Path) -> tuple[Image, ...]:
        return (Image.from_file(images),)


def answers_of(given: Any) -> tuple[str, ...]:
    """Return the distinct non-blank answers of a row, whose field is a text or a list of texts.

    Raises:
        DataError: If there are none.
    """
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise DataError(f"no answers: {given!r:.200}")
    written = dict.fromkeys(each for each in listed if each.strip())
    if not written:
        raise DataError(f"no answers: {given!r:.200}")
    return tuple(written)
