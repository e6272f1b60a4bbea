"""Implements the parts that the loaders share: samples, option letters, means of groups."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from string import ascii_uppercase
from typing import Any

from visenv.data.table_source import TableSource
from visenv.errors import DataError
from visenv.types import Sample
from visenv.verifier import rule_score

from ..ground_truth import MediaTruth

Scored = Iterable[tuple[Sample, float]]
"""Samples of a benchmark with the scores of their answers, 0 or 1."""

_LETTER = re.compile(r"\(?([A-Z])\)?")


class Benchmark(TableSource):
    """Implements a loader that compares answers by the rules of the verifier."""

    ground_truth = MediaTruth

    def score(self, answer: str, sample: Sample) -> float:
        """Return 1 if the answer is right, otherwise 0."""
        return rule_score(sample, answer)

    def summary(self, scored: Scored) -> dict[str, float]:
        """Return the published figures, 0 to 1: the accuracy by kind, and the total."""
        return accuracies(scored)


def option_at(letter: Any, options: Sequence[str]) -> str:
    """Return the option of a letter such as ``"(B)"``.

    Raises:
        DataError: If the letter belongs to no option.
    """
    found = _LETTER.fullmatch(letter.strip()) if isinstance(letter, str) else None
    place = ascii_uppercase.index(found[1]) if found else len(options)
    if place >= len(options):
        raise DataError(f"the answer {letter!r} is not among {len(options)} options")
    return options[place]


def texts(value: Any, key: str) -> tuple[str, ...]:
    """Return a list of texts as a tuple.

    Raises:
        DataError: If it is another value, or empty.
    """
    if not isinstance(value, list) or not value or not all(isinstance(e, str) for e in value):
        raise DataError(f"{key} must be a list of texts, got {value!r:.80}")
    return tuple(value)


def accuracies(scored: Scored) -> dict[str, float]:
    """Return the accuracy of each kind, and of all rows as ``"total"``."""
    kinds: defaultdict[str, list[float]] = defaultdict(list)
    everything: list[float] = []
    for sample, score in scored:
        kinds[sample.kind].append(score)
        everything.append(score)
    return {kind: mean(scores) for kind, scores in sorted(kinds.items())} | {
        "total": mean(everything)
    }


def mean(scores: Sequence[float]) -> float:
    """Return the mean, or 0 if there are no scores."""
    return sum(scores) / len(scores) if scores else 0.0
