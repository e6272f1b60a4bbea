"""Implements the command `visenv compare`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from rich.console import Console

from visenv.errors import DataError, DivergedError, RunError
from visenv.files import output_folder, write_text
from visenv.makers import make_algorithm
from visenv.terminal import rich_text

from .cells import ComparisonCell, read_cells
from .picture import draw_comparison
from .run import BASELINES, FILTERED_SFT, Plan, is_finished, run_cell
from .table import ComparisonRow, rows_of, table
from .tasks import QUICK_TASKS, REFERENCE, TASKS, TRAINING, read_task, with_algorithm


def compare(
    algorithms: Sequence[str],
    tasks: Sequence[str],
    seeds: Sequence[int],
    num_generations: Sequence[int],
    *,
    quick: bool,
    minutes: float,
    threads: int,
    out: Path,
    runs: Path,
    against: Path | None,
) -> None:
    """Run the cells that are not finished, print the table of all cells, and draw the picture.

    Args:
        algorithms: The algorithms that are compared with `BASELINES`.
        tasks: The tasks, by the names of the suite or as TOML files of recipes; empty for the
            suite.
        seeds: The seeds; empty for 0, 1 and 2.
        num_generations: Further sizes of groups with which GRPO is run.
        quick: Whether the suite has only `QUICK_TASKS`, and the only seed is 0 by default.
        minutes: The number of minutes after which no cell is started.
        threads: Number of threads of the policy.
        out: The folder of results.
        runs: The folder of the runs.
        against: Another folder of results, which is added to the table; None for none.

    Raises:
        UnknownNameError: If there is no such algorithm or task.
        ConfigurationError: If an algorithm or the recipe of a task cannot be used.
        DataError: If a file of results is damaged, or was measured with other settings, or if
            `against` contains no cell.
        RunError: If cells failed; the others are in the table.
    """
    started = time.monotonic()
    plans = planned(algorithms, tasks, seeds, num_generations, quick=quick)
    due = [plan for plan in plans if not is_finished(plan, out)]
    read_cells(out)  # raises before training if a file cannot be used
    if against is not None and not read_cells(against):
        raise DataError(f"{against} contains no cell of visenv compare.")
    failed: dict[str, str] = {}
    for plan in due:
        if (time.monotonic() - started) / 60 >= minutes:
            break
        try:
            run_cell(plan, out, runs, threads).write(out)
        except (DivergedError, RunError) as error:
            failed[f"{plan.label} on {plan.task.name}, seed {plan.seed}"] = str(error)
    console = Console()
    for line in _write_results(out, plans, against).splitlines():
        console.print(rich_text(line), soft_wrap=True)
    if failed:
        problems = "\n".join(f"{name}: {problem}" for name, problem in failed.items())
        raise RunError(f"{len(failed)} of {len(plans)} cells failed:\n{problems}")


def planned(
    algorithms: Sequence[str],
    tasks: Sequence[str],
    seeds: Sequence[int],
    num_generations: Sequence[int],
    *,
    quick: bool,
) -> list[Plan]:
    """Return the cells in their order: all of the first seed, task by task, then the next seed.

    The arguments and the errors are those of `compare`.
    """
    names = list(dict.fromkeys([*BASELINES, *algorithms]))
    for name in names:
        if name != FILTERED_SFT:
            make_algorithm(name, {})
    suite = QUICK_TASKS if quick else tuple(TASKS)
    recipes = [read_task(name) for name in dict.fromkeys(tasks or suite)]
    sizes = list(dict.fromkeys(num_generations))
    for task, size in product(recipes, sizes):
        with_algorithm(task.recipe.phases[TRAINING], REFERENCE, size)  # raises for unusable sizes
    plans: list[Plan] = []
    for seed, task in product(dict.fromkeys(seeds or ((0,) if quick else (0, 1, 2))), recipes):
        trained = [name for name in names if name != FILTERED_SFT or task.filtered is not None]
        plans += [Plan(name, task, seed) for name in trained]
        plans += [Plan(REFERENCE, task, seed, size) for size in sizes]
    return plans


def summarized(
    cells: Sequence[ComparisonCell], plans: Sequence[Plan], against: Path | None = None
) -> tuple[list[ComparisonRow], str]:
    """Return the rows of the table, and the table as Markdown.

    Args:
        cells: The finished cells.
        plans: The cells that were asked for.
        against: Another folder of results; None for none.
    """
    others = [] if against is None else read_cells(against)
    wanted = [(plan.label, plan.task.name, plan.seed) for plan in plans]
    suffix = "" if against is None else f" ({against.resolve().name})"
    rows = rows_of(cells, wanted, others, suffix)
    tasks = [*(task for _, task, _ in wanted), *(cell.task for cell in (*cells, *others))]
    return rows, table(rows, list(dict.fromkeys(tasks)))


def _write_results(folder: Path, plans: Sequence[Plan], against: Path | None) -> str:
    """Write the table and the picture of all cells of a folder; return the table."""
    cells = read_cells(folder)
    rows, text = summarized(cells, plans, against)
    write_text(output_folder(folder) / "results.md", text)
    draw_comparison(rows, cells, folder / "results.png")
    return text
