"""Implements the parts that both MAT data sets share, with the scores of the paper's tables 1 to 4.

Both data sets (Visual-ARFT, arXiv 2505.14246) are on the hub as ``laolao77/MAT``.
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

from ..coding.ground_truth import CodingTruth
from ..rewards.qa import Compat, token_f1
from ..search.ground_truth import SearchTruth

ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
"""Matches the answer in a solution of the training sets."""

SPLITS = ("simple", "hard")
SCORES = {"F1": "f1", "EM": "accuracy"}
"""The columns of the tables, with the metric whose mean they show."""

AVERAGE = "average"


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


def split_scores(episodes: Sequence[Episode], left_out: int = 0) -> dict[str, float]:
    """Return the cells of a row of the tables, each 0 to 1.

    Every item counts: an item that was aborted, was not answered or could not be read scores 0. The
    public evaluation drops such items and then assigns splits by position.

    Args:
        episodes: One episode for each item, including aborted ones.
        left_out: The number of rows that could not be read. Their split is unknown, so they
            count in the average alone, as does an episode whose sample could not be opened.

    Returns:
        The cells by name: ``"F1 simple"``, ``"EM simple"``, the same of ``hard``, if there are
        such items, and of ``average``, the mean over all items.
    """
    scores: dict[str, float] = {}
    for split in SPLITS:
        some = [each for each in episodes if _split_of(each) == split]
        scores |= _means(split, some, len(some))
    return scores | _means(AVERAGE, episodes, len(episodes) + left_out)


def _split_of(episode: Episode) -> str:
    """Return the split of an episode, ``""`` if its sample could not be opened."""
    truth = episode.ground_truth
    return truth.split if isinstance(truth, CodingTruth | SearchTruth) else ""


def _means(split: str, episodes: Sequence[Episode], items: int) -> dict[str, float]:
    return {
        f"{column} {split}": sum(each.metrics.get(metric, 0.0) for each in episodes) / items
        for column, metric in SCORES.items()
        if items
    }
