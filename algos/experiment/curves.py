"""Draws the curves of a run: the metrics of training by step, and the held-out score of each phase.

The held-out score is drawn against the episodes and the seconds of training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visenv.files import replacing

from ..trainer.evaluation import mean_headline
from ..trainer.metrics import EVALUATIONS, METRICS, read_metrics, step_seconds
from .recipe import Recipe
from .results import Results

BEFORE, TEACHER = "before training", "teacher"
"""Labels of the scores of the initial model and of the teacher."""


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


def label_after(recipe: Recipe, phase: str) -> str:
    """Return the label of the scores after a phase."""
    return f"{phase} (control)" if recipe.phases[phase].control else f"after {phase}"


class HeldOutPoint(NamedTuple):
    """Represents one evaluation on held-out samples.

    Attributes:
        episodes: Number of episodes from which the policy has learned; a demonstration counts each
            time that it is used.
        seconds: Seconds of training, without evaluations.
        score: The greedy headline metric, averaged over the environments.
    """

    episodes: int
    seconds: float
    score: float


def held_out_curves(
    recipe: Recipe,
    folder: Path,
    results: Results,
    headlines: Mapping[str, str],
    seconds: Callable[[Mapping[str, float]], float] = step_seconds,
) -> dict[str, list[HeldOutPoint]]:
    """Return the evaluations of each finished phase, by its name.

    The first point of a phase is the last one of the phase with whose weights it began.

    Args:
        recipe: The recipe.
        folder: The folder of the run.
        results: The results of the run.
        headlines: The headline metric of each environment.
        seconds: Returns the seconds of a step from its metrics.
    """
    curves: dict[str, list[HeldOutPoint]] = {}
    for name, phase in recipe.phases.items():
        scores = results.scores.get(label_after(recipe, name))
        before = recipe.begins_with(name)
        if scores is None or (before is not None and before not in curves):
            continue
        begin = (
            HeldOutPoint(0, 0.0, mean_headline(results.scores[BEFORE], headlines))
            if before is None
            else curves[before][-1]
        )
        a_step = (
            phase.demonstrations.batch_size
            if phase.is_sft
            else phase.rollouts.prompts_per_step * phase.rollouts.num_generations
        )
        rows = [row for _, row in read_metrics(folder / name / METRICS)]
        spent = list(accumulate(map(seconds, rows)))
        evaluations = folder / name / EVALUATIONS
        found = {
            row["step"]: row["eval/headline"]
            for _, row in (read_metrics(evaluations) if evaluations.exists() else ())
        }
        # The evaluation after the phase has more samples than those during the phase.
        found[results.steps[name]] = mean_headline(scores, headlines)
        curves[name] = [begin] + [
            HeldOutPoint(begin.episodes + step * a_step, begin.seconds + spent[step - 1], score)
            for step, score in sorted(found.items())
            if 0 < step <= len(spent)
        ]
    return curves


def draw_held_out(
    curves: Mapping[str, Sequence[HeldOutPoint]], teacher: float | None, picture: Path, metric: str
) -> None:
    """Draw the curves twice: against the number of episodes, and against the seconds.

    Args:
        curves: The evaluations of each phase, by its name.
        teacher: The score of the teacher, as a horizontal line; None draws none.
        picture: The PNG file to write.
        metric: The title of the vertical axis.
    """
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    for chart, axis in zip(
        figure.subplots(1, 2, sharey=True), ("episodes", "seconds"), strict=True
    ):
        for name, points in curves.items():
            places = [getattr(point, axis) for point in points]
            chart.plot(places, [point.score for point in points], ".-", linewidth=1.6, label=name)
        if teacher is not None:
            chart.axhline(teacher, color="gray", linestyle="--", linewidth=1.2, label=TEACHER)
        chart.set_xlabel({"episodes": "episodes learned from", "seconds": "seconds"}[axis])
        chart.grid(alpha=0.25)
        chart.tick_params(labelsize=8)
        if axis == "episodes":
            chart.set_ylabel(f"held-out {metric}, greedy", parse_math=False)
    figure.axes[0].legend(fontsize=8)
    with replacing(picture) as partial:
        figure.savefig(partial, dpi=130, format=picture.suffix.removeprefix("."))


def teacher_score(results: Results, headlines: Mapping[str, str]) -> float | None:
    """Return the score of the teacher, or None if the run has no teacher."""
    scores = results.scores.get(TEACHER)
    return None if scores is None else mean_headline(scores, headlines)
