"""Draws the metrics of training by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from visenv.files import replacing

from ..trainer.metrics import read_metrics


def draw_training(metrics: Sequence[Path], picture: Path, names: Sequence[str]) -> None:
    """Draw reward, metrics, format, entropy and loss by step, with one row for each phase.

    Args:
        metrics: The ``metrics.jsonl`` of each phase, in a folder with the name of the phase.
        picture: The PNG file to write.
        names: The metrics of the tasks to draw; those that a phase lacks are left out.
    """
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    phases = {path.parent.name: [row for _, row in read_metrics(path)] for path in metrics}
    tasks = (f"metrics/{name}" for name in names)
    shown = ("reward", *tasks, "terms/format", "entropy", "loss")
    known = {
        phase: [name for name in shown if any(name in row for row in rows)]
        for phase, rows in phases.items()
    }
    columns = max(map(len, known.values()))
    size = (3.2 * columns, 2.6 * len(phases))  # inches
    figure = Figure(figsize=size)
    # Matplotlib's own layouts draw everything several times.
    left, top = 0.5 / size[0], 0.35 / size[1]
    figure.subplots_adjust(left, top, 1 - left / 4, 1 - top, wspace=0.25, hspace=0.35)
    grid = figure.subplots(len(phases), columns, squeeze=False)
    for (phase, rows), charts in zip(phases.items(), grid, strict=True):
        for chart in charts:
            chart.set_axis_off()
        for chart, name in zip(charts, known[phase], strict=False):
            chart.set_axis_on()
            _draw(chart, rows, name)
            # A name may contain the signs of matplotlib's formulas.
            chart.set_title(f"{phase}: {name}", fontsize=9, parse_math=False)
    with replacing(picture) as partial:
        figure.savefig(partial, dpi=110, format=picture.suffix.removeprefix("."))


def _draw(chart: Any, rows: list[dict[str, Any]], name: str) -> None:
    points = [(row["step"], row[name]) for row in rows if name in row]
    steps, values = (np.array(each, float) for each in zip(*points, strict=True))
    chart.plot(steps, values, alpha=0.3, linewidth=1)
    width = max(1, len(values) // 12)
    smooth = [values[max(0, end - width) : end].mean() for end in range(1, len(values) + 1)]
    chart.plot(steps, smooth, linewidth=1.6)
    chart.locator_params(nbins=5)  # matplotlib spends most of its time on ticks
    chart.tick_params(labelsize=7)
    chart.grid(alpha=0.25)
