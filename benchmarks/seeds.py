"""Prints a table of the held-out scores of several seeds of one recipe, and draws their curves.

Each cell is the greedy / sampled value of a metric. The last columns are the mean over the seeds,
and the lowest value of each mode. Run the seeds first, for example::

    for seed in 0 1 2 3 4; do
        visenv train zoom_tiny --seed $seed --name seed-$seed --num-processes 1
    done
    python benchmarks/seeds.py zoom_tiny runs/seed-* --picture curves.png
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from visenv.algos.experiment import Recipe, read_recipe, recipe_path
from visenv.algos.experiment.curves import (
    TEACHER,
    HeldOutPoint,
    held_out_curves,
    teacher_score,
)
from visenv.algos.experiment.parts import headline_metrics
from visenv.algos.experiment.results import Results
from visenv.algos.trainer.evaluation import WAYS


@dataclass(frozen=True)
class SeedsOptions:
    """Holds the options of this script.

    Attributes:
        recipe: The recipe, a name or a file.
        folders: The folders of the runs, one for each seed.
        metric: The metric of the table; a mean over environments.
        picture: A PNG file to draw: one line for each phase and seed.
    """

    recipe: Annotated[str, tyro.conf.Positional]
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    metric: str = "accuracy"
    picture: Path | None = None


def score_table(runs: Mapping[str, Results], metric: str) -> str:
    """Return the scores as a table in Markdown, with a row for each label of the results.

    Args:
        runs: The results by the name of the run.
        metric: The metric, or "reward".
    """
    lines = [
        f"| {metric}, {' / '.join(WAYS)} | {' | '.join(runs)} | mean | lowest |",
        "|---|" + "---|" * (len(runs) + 2),
    ]
    for label in dict.fromkeys(label for results in runs.values() for label in results.scores):
        values = np.array([_values(results, label, metric) for results in runs.values()])
        means = np.nanmean(values, axis=0)  # [run, way] -> [way]
        rows = [*values, means, np.nanmin(values, axis=0)]
        lines.append(f"| {label} | {' | '.join(map(_cell, rows))} |")
    seconds = {
        name: np.array([results.seconds.get(name, np.nan) for results in runs.values()])
        for name in next(iter(runs.values())).seconds
    }
    for name, taken in seconds.items():
        cells = " | ".join("–" if np.isnan(value) else f"{value:.0f}" for value in taken)
        lines.append(f"| seconds of {name} | {cells} | {np.nanmean(taken):.0f} |  |")
    return "\n".join(lines)


def _values(results: Results, label: str, metric: str) -> list[float]:
    """Return the means over environments for both ways; NaN for a label that was not measured."""
    environments = results.scores.get(label, {}).values()
    found = [[scores[way].value(metric) for way in WAYS] for scores in environments]
    known = [values for values in found if None not in values]
    return list(np.mean(np.array(known, float), axis=0)) if known else [np.nan] * len(WAYS)


def _cell(values: Sequence[float]) -> str:
    return " / ".join("–" if np.isnan(value) else f"{value:.3f}" for value in values)


def draw_seeds(
    curves: Sequence[Mapping[str, Sequence[HeldOutPoint]]],
    teacher: float | None,
    title: str,
    picture: Path,
) -> None:
    """Draw the held-out curves of all seeds, with one color for each phase.

    Args:
        curves: For each seed, the evaluations of each phase by its name.
        teacher: The mean score of the teacher; None draws none.
        title: The title of the vertical axis.
        picture: The PNG file to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for number, phases in enumerate(curves):
        for place, (name, points) in enumerate(phases.items()):
            axes.plot(
                [point.episodes for point in points],
                [point.score for point in points],
                color=f"C{place}",
                linewidth=1.3,
                alpha=0.75,
                label=name if number == 0 else None,
            )
    if teacher is not None:
        axes.axhline(teacher, color="gray", linestyle="--", linewidth=1.2, label=TEACHER)
    axes.set_xlabel("episodes learned from")
    axes.set_ylabel(title, parse_math=False)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8)
    figure.savefig(picture, dpi=130)


def _draw(recipe: Recipe, runs: Mapping[Path, Results], picture: Path) -> None:
    headlines = {name: metrics[0] for name, metrics in headline_metrics(recipe).items()}
    curves = [
        held_out_curves(recipe, folder, results, headlines) for folder, results in runs.items()
    ]
    teachers = [teacher_score(results, headlines) for results in runs.values()]
    known = [score for score in teachers if score is not None]
    title = f"held-out {', '.join(dict.fromkeys(headlines.values()))}, greedy"
    draw_seeds(curves, float(np.mean(known)) if known else None, title, picture)


def main(options: SeedsOptions) -> None:
    """Print the table, and draw the picture if one is wanted."""
    folders = sorted(options.folders, key=_number)
    runs = {folder: Results(folder / "results.json") for folder in folders}
    print(score_table({folder.name: results for folder, results in runs.items()}, options.metric))
    if options.picture is not None:
        _draw(read_recipe(recipe_path(options.recipe)), runs, options.picture)


def _number(folder: Path) -> list[int]:
    """Return the numbers in the name of a folder, so that seed 10 comes after seed 9."""
    return [int(digits) for digits in re.findall(r"\d+", folder.name)]


if __name__ == "__main__":
    main(tyro.cli(SeedsOptions))
