"""Writes the table of a comparison as Markdown: accuracy by task, aggregates, and differences."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from visenv.evaluation.aggregates import (
    difference_of_means,
    interquartile_mean,
    probability_of_improvement,
)
from visenv.evaluation.intervals import Mean
from visenv.evaluation.summary_files import cell_table

from .cells import Accuracy, ComparisonCell
from .tasks import REFERENCE

TEACHER, SFT = "teacher", "SFT"
"""The rows of the player of the demonstrations, and of the warm-up."""


class Place(NamedTuple):
    """Identifies a cell of a row: the results on one task with one seed."""

    task: str
    seed: int


@dataclass(frozen=True)
class ComparisonRow:
    """Holds the accuracy of one algorithm, of the teacher, or of the warm-up.

    Attributes:
        label: The name of the row.
        scores: The accuracy after training, by task and seed.
        wanted: The cells that were asked for or are finished; none for the teacher and the warm-up.
    """

    label: str
    scores: Mapping[Place, Accuracy]
    wanted: Collection[Place] = ()

    def values(self, way: str, places: Iterable[Place] | None = None) -> list[list[float]]:
        """Return the scores of each task.

        Args:
            way: ``"greedy"`` or ``"sampled"``.
            places: The cells to take; by default all.
        """
        chosen = list(self.scores if places is None else places)
        return [
            [getattr(self.scores[place], way) for place in chosen if place.task == task]
            for task in dict.fromkeys(place.task for place in chosen)
        ]


class ReferenceDifference(NamedTuple):
    """Compares a row with the reference, over the cells that both have.

    Attributes:
        means: The difference of the greedy interquartile means, with its interval.
        probability: The probability that the row is better than the reference, greedy.
        cells: Number of cells that both have.
    """

    means: Mean
    probability: Mean
    cells: int


def rows_of(
    cells: Sequence[ComparisonCell],
    wanted: Sequence[tuple[str, str, int]],
    others: Sequence[ComparisonCell] = (),
    suffix: str = "",
) -> list[ComparisonRow]:
    """Return the rows of the table: teacher, warm-up, and each algorithm.

    Args:
        cells: The finished cells.
        wanted: The label, the task and the seed of each cell that was asked for.
        others: The cells of another folder of results.
        suffix: Follows the labels of `others`.
    """
    rows = [
        ComparisonRow(
            TEACHER, {_place(cell): cell.teacher for cell in cells if cell.teacher is not None}
        ),
        ComparisonRow(SFT, {_place(cell): cell.warm_up for cell in cells}),
    ]
    asked = list(dict.fromkeys(label for label, _, _ in wanted))
    for label in dict.fromkeys([*asked, *(cell.label for cell in cells)]):
        own = {_place(cell): cell.final for cell in cells if cell.label == label}
        places = {Place(task, seed) for name, task, seed in wanted if name == label}
        rows.append(ComparisonRow(label, own, places | own.keys()))
    for label in dict.fromkeys(cell.label for cell in others):
        theirs = {_place(cell): cell.final for cell in others if cell.label == label}
        rows.append(ComparisonRow(f"{label}{suffix}", theirs, set(theirs)))
    return [row for row in rows if row.scores or row.wanted]


def _place(cell: ComparisonCell) -> Place:
    return Place(cell.task, cell.seed)


def differences(rows: Sequence[ComparisonRow]) -> dict[str, ReferenceDifference]:
    """Compare each row with that of `REFERENCE`, over the cells that both have.

    Returns:
        The comparisons by label, without rows that have no cell in common with the reference.
    """
    by_label = {row.label: row for row in rows}
    reference = by_label.pop(REFERENCE, None)
    found: dict[str, ReferenceDifference] = {}
    if reference is None:
        return found
    for row in by_label.values():
        common = [place for place in row.scores if place in reference.scores]
        if common:
            mine, theirs = row.values("greedy", common), reference.values("greedy", common)
            means = difference_of_means(mine, theirs)
            chance = probability_of_improvement(mine, theirs)
            found[row.label] = ReferenceDifference(means, chance, len(common))
    return found


def table(rows: Sequence[ComparisonRow], tasks: Sequence[str]) -> str:
    """Return the table and the differences that the intervals separate, as Markdown.

    Args:
        rows: The rows, as `rows_of` returns them.
        tasks: The names of the tasks, which are the columns.
    """
    compared = differences(rows)
    head = [
        "accuracy, greedy / sampled",
        *tasks,
        "cells",
        "IQM, greedy",
        "IQM, sampled",
        f"difference from {REFERENCE}",
        f"P(better than {REFERENCE})",
    ]
    lines: list[list[str]] = []
    for row in rows:
        found = compared.get(row.label)
        cells = [_of_task(row, task) for task in tasks]
        aggregates = [_aggregate(row, "greedy"), _aggregate(row, "sampled")]
        gap = ["–", "–"] if found is None else [_signed(found.means), str(found.probability)]
        lines.append([row.label, *cells, _count(row), *aggregates, *gap])
    said = "\n".join(_sentences(compared))
    return f"{cell_table(head, lines)}\n\n{said}\n"


def _of_task(row: ComparisonRow, task: str) -> str:
    """Return the mean accuracy over seeds, and the number of seeds if some were not run."""
    scores = [score for place, score in row.scores.items() if place.task == task]
    wanted = sum(place.task == task for place in row.wanted)
    if not scores:
        return "not run" if wanted else "–"
    greedy = np.mean([score.greedy for score in scores])
    sampled = np.mean([score.sampled for score in scores])
    some = f" ({len(scores)} of {wanted} seeds)" if len(scores) < wanted else ""
    return f"{greedy:.3f} / {sampled:.3f}{some}"


def _count(row: ComparisonRow) -> str:
    return f"{len(row.scores)} of {len(row.wanted)}" if row.wanted else str(len(row.scores))


def _aggregate(row: ComparisonRow, way: str) -> str:
    return str(interquartile_mean(row.values(way))) if row.scores else "–"


def _signed(mean: Mean) -> str:
    if math.isnan(mean.low):
        return f"{mean.value:+.3f}"
    return f"{mean.value:+.3f} [{mean.low:+.3f}, {mean.high:+.3f}]"


def _sentences(compared: Mapping[str, ReferenceDifference]) -> Iterator[str]:
    """Yield a sentence for each difference from the reference whose interval excludes 0."""
    separated = [
        (label, found.means)
        for label, found in compared.items()
        if found.means.low > 0 or found.means.high < 0
    ]
    for label, means in separated:
        word = "higher" if means.value > 0 else "lower"
        yield f"- {label} is {word} than {REFERENCE}: {_signed(means)} in the greedy IQM."
    if not separated:
        yield f"No interval separates an algorithm from {REFERENCE}."
