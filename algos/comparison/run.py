"""Runs cells: one algorithm on one task with one seed, from a warm-up that all algorithms share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from visenv.errors import DataError, RunError
from visenv.provenance import provenance

from ..experiment.curves import TEACHER, HeldOutPoint, held_out_curves, label_after
from ..experiment.experiment import SharedPhases, run_recipe
from ..experiment.extension import check_same_steps
from ..experiment.folder import check_folder
from ..experiment.parts import headline_metrics
from ..experiment.recipe import Phase, Recipe
from ..experiment.results import Results
from ..experiment.sweep import InitialPhases, is_done, resumed, shared_recipe
from ..trainer.evaluation import Scores, mean_headline
from ..trainer.metrics import processor_seconds
from .cells import Accuracy, ComparisonCell, CurvePoint, cell_file, folder_name, label_of, read_cell
from .tasks import REFERENCE, TRAINING, WARM_UP, TaskRecipes, filtered_sft, with_algorithm

FILTERED_SFT = "filtered_sft"
"""The name of SFT on the demonstrations with the highest reward, for as long as GRPO."""
BASELINES = (REFERENCE, "rejection_sampling", FILTERED_SFT)
"""The algorithms that every comparison contains."""


class Plan(NamedTuple):
    """Names a cell to run.

    Attributes:
        algorithm: The name of the algorithm, `FILTERED_SFT`, or ``module:Class``.
        task: The settings of the task.
        seed: The seed of the run.
        num_generations: The size of groups; None for that of the task.
    """

    algorithm: str
    task: TaskRecipes
    seed: int
    num_generations: int | None = None

    @property
    def label(self) -> str:
        """Return the row of the cell in the table."""
        return label_of(self.algorithm, self.num_generations)

    def file(self, folder: Path) -> Path:
        """Return the file of the cell in a folder of results."""
        return cell_file(folder, self.label, self.task.name, self.seed)


def is_finished(plan: Plan, folder: Path) -> bool:
    """Return whether a folder of results contains a cell.

    Raises:
        DataError: If it contains the cell with other settings of the task.
    """
    path = plan.file(folder)
    if not path.exists():
        return False
    if read_cell(path).settings != plan.task.digest:
        raise DataError(
            f"{path} was measured with other settings of {plan.task.name}. Delete it, or use "
            "another folder with --out."
        )
    return True


def run_cell(plan: Plan, folder: Path, runs: Path, threads: int) -> ComparisonCell:
    """Run a cell, or continue it.

    Args:
        plan: The task, the algorithm and the seed of the cell.
        folder: The folder of results, which contains the cell of GRPO if `plan` is filtered SFT.
        runs: The folder of the runs of all cells.
        threads: Number of threads of the policy.

    Raises:
        ConfigurationError: If a part cannot be created.
        RunError: If `runs` contains the run with other settings, or filtered SFT cannot be run.
        DivergedError: If training diverges.
    """
    base = plan.task.recipe
    options = {**base.model.options, "threads": threads}
    base = replace(base, seed=plan.seed, model=replace(base.model, options=options))
    phases = {WARM_UP: base.phases[WARM_UP], TRAINING: _training(plan, folder)}
    place, name = runs / plan.task.name, f"seed-{plan.seed}"
    recipe = replace(base, runs=place / folder_name(plan.label), name=name, phases=phases)
    shared = shared_recipe(recipe, place, InitialPhases(WARM_UP, [WARM_UP]))
    for run in map(resumed, (shared, recipe)):  # no cell starts from a warm-up of other settings
        check_folder(run)
        if run.resume:
            check_same_steps(run)
    if not is_done(shared):
        run_recipe(resumed(shared))
    if not is_done(recipe):
        run_recipe(resumed(recipe), SharedPhases(shared.folder, [WARM_UP]))
    return _cell(plan, recipe, threads)


def _training(plan: Plan, folder: Path) -> Phase:
    if plan.algorithm != FILTERED_SFT:
        phase = plan.task.recipe.phases[TRAINING]
        return with_algorithm(phase, plan.algorithm, plan.num_generations)
    grpo = plan._replace(algorithm=REFERENCE).file(folder)
    if not grpo.exists():
        raise RunError(
            f"Filtered SFT is trained for as long as {REFERENCE}, and {grpo} does not exist: add "
            f"{REFERENCE} to the algorithms."
        )
    return filtered_sft(plan.task, equal_steps(read_cell(grpo)))


def equal_steps(grpo: ComparisonCell) -> int:
    """Return the number of steps of SFT that take as many processor seconds as a cell of GRPO.

    The time of a step is that of the warm-up of the same cell, so that the number does not depend
    on the machine that measured the cell.
    """
    return max(1, round(grpo.seconds * grpo.warm_up_steps / grpo.warm_up_seconds))


def _cell(plan: Plan, recipe: Recipe, threads: int) -> ComparisonCell:
    """Return the results of a finished run."""
    folder = recipe.folder
    results = Results(folder / "results.json")
    headlines = {env: names[0] for env, names in headline_metrics(recipe).items()}
    curves = held_out_curves(recipe, folder, results, headlines, processor_seconds)
    start = curves[WARM_UP][-1]
    points = [_since(start, point) for point in curves[TRAINING]]
    teacher = results.scores.get(TEACHER)
    warm_up = _accuracy(results.scores[label_after(recipe, WARM_UP)], headlines)
    final = _accuracy(results.scores[label_after(recipe, TRAINING)], headlines)
    for value in (warm_up.greedy, warm_up.sampled, final.greedy, final.sampled):
        if not 0 <= value <= 1:
            raise RunError(f"The headline metric of {plan.task.name} must lie between 0 and 1.")
    return ComparisonCell(
        algorithm=plan.algorithm,
        task=plan.task.name,
        ability=plan.task.ability,
        seed=plan.seed,
        num_generations=plan.num_generations,
        settings=plan.task.digest,
        metric=", ".join(dict.fromkeys(headlines.values())),
        held_out_episodes=recipe.evaluation.episodes,
        teacher=None if teacher is None else _accuracy(teacher, headlines),
        warm_up=warm_up,
        final=final,
        curve=tuple(points),
        warm_up_steps=results.steps[WARM_UP],
        warm_up_seconds=start.seconds,
        steps=results.steps[TRAINING],
        episodes=points[-1].episodes,
        seconds=points[-1].seconds,
        threads=threads,
        provenance=provenance(),
    )


def _since(start: HeldOutPoint, point: HeldOutPoint) -> CurvePoint:
    """Return an evaluation with the episodes and seconds since the end of the warm-up."""
    return CurvePoint(point.episodes - start.episodes, point.seconds - start.seconds, point.score)


def _accuracy(scores: Scores, headlines: Mapping[str, str]) -> Accuracy:
    """Return the headline metric, averaged over the environments."""
    return Accuracy(*(mean_headline(scores, headlines, way) for way in ("greedy", "sampled")))
