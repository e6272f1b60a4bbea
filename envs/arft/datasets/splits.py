"""Computes the scores of Visual-ARFT's tables 1 to 4: F1 and exact match by split.

Every item counts: an item that was aborted, was not answered or could not be read scores 0. The
public evaluation drops such items and then assigns splits by position.
"""

from __future__ import annotations

from collections.abc import Sequence

from visenv.types import Episode

from ..coding.ground_truth import CodingTruth
from ..search.ground_truth import SearchTruth

SPLITS = ("simple", "hard")
SCORES = {"F1": "f1", "EM": "accuracy"}
"""The columns of the tables, with the metric whose mean they show."""

AVERAGE = "average"


def split_scores(episodes: Sequence[Episode], left_out: int = 0) -> dict[str, float]:
    """Return the cells of a row of the tables, each 0 to 1.

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
