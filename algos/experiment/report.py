"""Reports a finished run: curves, the table of scores, the report page, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from visenv.terminal import rich_text
from visenv.viewer import write_report

from ..trainer.metrics import METRICS
from ..trainer.spread import spread_warnings
from . import parts
from .before_after import link_change
from .held_out_curves import (
    BEFORE,
    TEACHER,
    draw_held_out,
    held_out_curves,
    label_after,
    teacher_score,
)
from .recipe import Recipe
from .results import Results
from .training_curves import draw_training


def report_run(recipe: Recipe, folder: Path, results: Results, console: Console) -> None:
    """Draw the curves of a run, print its table, write its report, and print its warnings.

    Args:
        recipe: The recipe.
        folder: The folder of the run.
        results: The results of all phases.
        console: The console to print to.
    """
    logs = [path for phase in recipe.phases if (path := folder / phase / METRICS).exists()]
    declared = parts.headline_metrics(recipe)
    columns = _columns(recipe, declared)
    draw_training(logs, folder / "training.png", columns)
    headlines = {env: metrics[0] for env, metrics in declared.items()}
    draw_held_out(
        held_out_curves(recipe, folder, results, headlines),
        teacher_score(results, headlines),
        folder / "curves.png",
        ", ".join(dict.fromkeys(headlines.values())),
    )
    for table in results.tables(columns, console.width):
        console.print(table)
    console.print(rich_text(f"Report: {write_report(folder)}"))
    _link_changes(recipe, folder, results, console)
    for path in logs:
        for warning in spread_warnings(path):
            console.print(rich_text(f"Warning: phase {path.parent.name}: {warning}"))


def table_metrics(recipe: Recipe) -> tuple[str, ...]:
    """Return the metrics of the table: those of the recipe, or those that its tasks declare."""
    return _columns(recipe, parts.headline_metrics(recipe))


def evaluation_folder(run: Path, label: str) -> Path:
    """Return the folder of the held-out episodes of a label in the folder of a run."""
    return run / "evaluation" / label.replace(", ", "-").replace(" ", "-")


def _columns(recipe: Recipe, declared: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    names = (name for metrics in declared.values() for name in metrics)
    return recipe.evaluation.metrics or tuple(dict.fromkeys(names))


def _link_changes(recipe: Recipe, folder: Path, results: Results, console: Console) -> None:
    """Print a link to a held-out episode of each environment before and after training."""
    last = recipe.last_phase
    begin = recipe.begins_with(last)
    before = BEFORE if begin is None else label_after(recipe, begin)
    if TEACHER in results.scores:
        before = TEACHER
    for env in recipe.environments:
        files = [
            evaluation_folder(folder, label) / f"{env}.jsonl"
            for label in (before, label_after(recipe, last))
        ]
        # The episodes of phases that runs share are in the folder of another run.
        shared = not all(file.exists() for file in files)
        link = None if shared else link_change(folder, files[0], files[1])
        if link is not None:
            console.print(rich_text(f"{env}, {before} and after {last}: {link}"), soft_wrap=True)
