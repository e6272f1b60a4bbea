"""Reports a finished run: curves, the table of scores, the report page, and warnings.

The page links to a held-out episode that training changed, before and after training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rich.console import Console

from visenv.episodes import read_episodes
from visenv.terminal import rich_text
from visenv.viewer import write_report

from ..trainer.diagnostics import spread_warnings
from ..trainer.metrics import METRICS
from . import parts
from .curves import (
    BEFORE,
    TEACHER,
    draw_held_out,
    draw_training,
    held_out_curves,
    label_after,
    teacher_score,
)
from .recipe import Recipe
from .results import Results


class Change(NamedTuple):
    """Names two episodes of one held-out sample by their lines.

    Attributes:
        before: The line of the first episode, counted from 0.
        after: The line of the second episode.
        gain: The reward of the second episode minus that of the first one.
    """

    before: int
    after: int
    gain: float


def largest_change(before: Path, after: Path) -> Change | None:
    """Return the two episodes of the sample whose reward increased most; the first of equal ones.

    Args:
        before: A file of episodes.
        after: A file of episodes of another policy.

    Returns:
        The two episodes, or None if no reward has risen.
    """
    lines = {
        (episode.env_id, episode.sample_id, episode.seed): (line, episode.reward)
        for line, episode in enumerate(read_episodes(before, messages=False))
        if episode.status != "aborted"
    }
    best: Change | None = None
    for line, episode in enumerate(read_episodes(after, messages=False)):
        found = lines.get((episode.env_id, episode.sample_id, episode.seed))
        if found is None or episode.status == "aborted":
            continue
        change = Change(found[0], line, episode.reward - found[1])
        if change.gain > (best.gain if best else 0.0):
            best = change
    return best


def link_change(folder: Path, before: Path, after: Path) -> str | None:
    """Return the address of the page of the report with the largest change, side by side.

    Args:
        folder: The folder of the run, which holds ``report.html``.
        before: A file of episodes in the folder.
        after: A file of episodes of another policy in the folder.

    Returns:
        The address, or None if no reward has risen.
    """
    change = largest_change(before, after)
    if change is None:
        return None
    names = (path.relative_to(folder).with_suffix("").as_posix() for path in (before, after))
    first, second = (quote(name, safe="") for name in names)
    page = (folder / "report.html").absolute().as_uri()
    return f"{page}#/pair/{first}/{change.before}/{second}/{change.after}"


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
