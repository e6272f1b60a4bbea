"""Draws a comparison: aggregates with intervals, performance profiles, and curves of each task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from visenv.evaluation.aggregates import interquartile_mean, performance_profile
from visenv.evaluation.intervals import Mean
from visenv.files import replacing

from .cells import ComparisonCell
from .table import SFT, TEACHER, ComparisonRow, differences
from .tasks import REFERENCE

Colors = Mapping[str, tuple[float, float, float, float]]
"""The color of each row, as RGBA, by its label."""

_THRESHOLDS = tuple(np.linspace(0.0, 1.0, 41))


def draw_comparison(
    rows: Sequence[ComparisonRow], cells: Sequence[ComparisonCell], picture: Path
) -> None:
    """Draw the picture of a comparison.

    The first line shows the interquartile means, the performance profiles, and the probabilities of
    improvement, all greedy. Below, each task has its held-out accuracy against the episodes and
    against the processor seconds since the warm-up, with a line for each seed.

    Args:
        rows: The rows of the table.
        cells: The finished cells, without those of another folder.
        picture: The PNG file to write.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    tasks = list(dict.fromkeys(cell.task for cell in cells))
    known = [row for row in rows if row.scores]
    colors = {row.label: colormaps["tab20"](number % 20) for number, row in enumerate(known)}
    figure = Figure(figsize=(max(10.0, 3.0 * len(tasks)), 9.0), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1, 2))
    above, below = parts
    means, profiles, chances = above.subplots(1, 3)
    _draw_means(means, known, colors)
    _draw_profiles(profiles, known, colors)
    _draw_chances(chances, known, colors)
    if tasks:
        grid = below.subplots(2, len(tasks), sharey="col", squeeze=False)
        for task, column in zip(tasks, grid.T, strict=True):
            own = [cell for cell in cells if cell.task == task]
            for chart, axis in zip(column, ("episodes", "seconds"), strict=True):
                _draw_curves(chart, own, axis, colors)
            column[0].set_title(f"{task}: {own[0].ability}", fontsize=9, parse_math=False)
            column[0].set_ylabel(f"{own[0].metric}, greedy", fontsize=8, parse_math=False)
    with replacing(picture) as partial:
        figure.savefig(partial, dpi=110, format=picture.suffix.removeprefix("."))


def _draw_means(chart: Any, rows: Sequence[ComparisonRow], colors: Colors) -> None:
    found = {row.label: interquartile_mean(row.values("greedy")) for row in rows}
    _draw_intervals(chart, found, colors)
    chart.set_title("interquartile mean", fontsize=9)


def _draw_chances(chart: Any, rows: Sequence[ComparisonRow], colors: Colors) -> None:
    found = {label: each.probability for label, each in differences(rows).items()}
    _draw_intervals(chart, found, colors)
    chart.axvline(0.5, color="gray", linewidth=1, linestyle="--")
    chart.set_title(f"probability of being better than {REFERENCE}", fontsize=9)


def _draw_intervals(chart: Any, found: dict[str, Mean], colors: Colors) -> None:
    for height, (label, mean) in enumerate(reversed(found.items())):
        low, high = (mean.value,) * 2 if math.isnan(mean.low) else (mean.low, mean.high)
        chart.plot([low, high], [height, height], color=colors[label], linewidth=5, alpha=0.4)
        chart.plot([mean.value], [height], "o", color=colors[label], markersize=5)
    chart.set_yticks(range(len(found)), list(reversed(found)), fontsize=8, parse_math=False)
    chart.set_xlim(0.0, 1.0)
    chart.tick_params(labelsize=7)
    chart.grid(alpha=0.25)


def _draw_profiles(chart: Any, rows: Sequence[ComparisonRow], colors: Colors) -> None:
    for row in rows:
        if row.label == TEACHER:
            continue
        profile = performance_profile(row.values("greedy"), _THRESHOLDS)
        chart.plot(_THRESHOLDS, profile.shares, color=colors[row.label], linewidth=1.4)
        if not np.isnan(profile.low).any():
            area = (profile.low, profile.high)
            chart.fill_between(_THRESHOLDS, *area, color=colors[row.label], alpha=0.12)
    chart.set_title("share of cells above an accuracy", fontsize=9)
    chart.set_xlabel("accuracy, greedy", fontsize=8)
    chart.tick_params(labelsize=7)
    chart.grid(alpha=0.25)


def _draw_curves(chart: Any, cells: Sequence[ComparisonCell], axis: str, colors: Colors) -> None:
    for cell in cells:
        places = [getattr(point, axis) for point in cell.curve]
        values = [point.accuracy for point in cell.curve]
        chart.plot(places, values, ".-", color=colors[cell.label], linewidth=1.2, alpha=0.8)
    teachers = {cell.seed: cell.teacher.greedy for cell in cells if cell.teacher is not None}
    if teachers:
        chart.axhline(
            float(np.mean(list(teachers.values()))),
            color=colors[TEACHER],
            linestyle="--",
            linewidth=1,
        )
    chart.axhline(
        float(np.mean([cell.warm_up.greedy for cell in cells])),
        color=colors[SFT],
        linestyle=":",
        linewidth=1,
    )
    names = {"episodes": "episodes learned from", "seconds": "processor seconds"}
    chart.set_xlabel(names[axis], fontsize=8)
    chart.set_ylim(0.0, 1.0)
    chart.tick_params(labelsize=7)
    chart.grid(alpha=0.25)
