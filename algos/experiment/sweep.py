"""Runs sweeps: the arms of an ablation, with shared initial phases and one table of results."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from visenv.errors import ConfigurationError, DivergedError, RunError, UnknownNameError
from visenv.files import write_text
from visenv.launcher import is_first
from visenv.terminal import rich_text

from ..trainer.distributed import DistributedContext
from .experiment import SharedPhases, run_recipe
from .extension import check_same_steps, is_extended
from .folder import check_folder
from .parts import check_parts
from .recipe import Recipe, is_folder_name
from .report import table_metrics
from .results import Results, fitting_tables

SHARED = "shared"
"""The prefix of the folder of the phases that all arms have in common."""


@dataclass(frozen=True)
class SweepArm:
    """Holds one arm of a sweep.

    Attributes:
        changes: The differences from the recipe, as tables of the same form.
        seeds: The seeds of the runs of the arm.
    """

    changes: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ConfigurationError(f"seeds must be different numbers, got {self.seeds}.")


@dataclass(frozen=True)
class Sweep:
    """Holds the arms of a recipe.

    Attributes:
        arms: The arms by name.
        minutes: The total minutes of training after which no arm is started.
    """

    arms: dict[str, SweepArm] = field(default_factory=dict)
    minutes: float = math.inf

    def __post_init__(self) -> None:
        if not self.minutes > 0:
            raise ConfigurationError(f"minutes must be above 0, got {self.minutes}.")
        for name in self.arms:
            if name.startswith(SHARED) or not is_folder_name(name):
                raise ConfigurationError(
                    f"The name of an arm must be a plain folder name, got {name!r}."
                )


@dataclass(frozen=True)
class SweepRun:
    """Represents one arm with one seed.

    Attributes:
        arm: The name of the arm.
        recipe: The recipe of the arm, with the name of the folder of the run.
    """

    arm: str
    recipe: Recipe


def run_sweep(
    base: Recipe, runs: Sequence[SweepRun], minutes: float, arms: Sequence[str] = ()
) -> None:
    """Run the arms that are not complete, and print one table of all arms.

    The initial phases that arms have in common run once for each seed, in the folder
    ``shared-<phases>/`` (`shared_by_arm`). A sweep that was stopped continues when it is started
    again. If an arm fails, the others still run.

    Args:
        base: The recipe without changes, whose folder contains the folders of the runs.
        runs: The runs, beginning with the first seed of each arm.
        minutes: The total minutes of training after which no arm is started.
        arms: The names of the arms to run; empty for all. The table lists all arms.

    Raises:
        UnknownNameError: If there is no arm with one of the names.
        ConfigurationError: If a part of a recipe cannot be created.
        RunError: If a folder contains a run with other settings.
    """
    known = {run.arm for run in runs}
    for arm in arms:
        if arm not in known:
            raise UnknownNameError("arm of the sweep", arm, known)
    shared = shared_by_arm(runs)
    for run in runs:
        check_folder(resumed(run.recipe))
        if run.arm in shared:
            first = resumed(shared_recipe(run.recipe, base.folder, shared[run.arm]))
            check_folder(first)
            if first.resume and is_first():
                check_same_steps(first)
        check_parts(run.recipe)
    processes = DistributedContext(max(phase.timeout for phase in base.phases.values()))
    failed: dict[str, str] = {}
    for run in runs:
        if arms and run.arm not in arms:
            continue
        is_due = not is_done(run.recipe) and _minutes(base.folder) < minutes
        if not processes.broadcast(is_due):  # other processes may not see the latest files yet
            continue
        try:
            begun = None
            if run.arm in shared:
                begun = _run_shared(run.recipe, base.folder, shared[run.arm], processes)
            run_recipe(resumed(run.recipe), begun)
        except (DivergedError, RunError) as error:
            failed[f"{run.arm}, seed {run.recipe.seed}"] = str(error)
    if processes.first:
        _report(base, runs, failed)


class InitialPhases(NamedTuple):
    """Names the phases that some arms have in common, and the folder in which they run."""

    folder: str
    phases: Sequence[str]


def shared_by_arm(runs: Sequence[SweepRun]) -> dict[str, InitialPhases]:
    """Return the initial phases that each arm shares with others; some arms share none.

    Arms share phases if they differ only in phases and controls. An arm with another environment,
    for example, shares phases with the other arms of this environment.
    """
    groups: defaultdict[str, list[SweepRun]] = defaultdict(list)
    for run in runs:
        groups[_apart_from_phases(run.recipe)].append(run)
    shared: dict[str, InitialPhases] = {}
    for number, group in enumerate(groups.values()):
        arms = list(dict.fromkeys(run.arm for run in group))
        phases = shared_phases([run.recipe for run in group])
        if phases and (len(arms) > 1 or len(groups) == 1):
            own = arms[:1] if number else []  # the first group has the name without an arm
            folder = "-".join((SHARED, *phases, *own))
            shared.update(dict.fromkeys(arms, InitialPhases(folder, phases)))
    return shared


def _apart_from_phases(recipe: Recipe) -> str:
    """Return a text that is equal for recipes that differ only in phases, controls and seeds."""
    free = {"name", "runs", "seed", "resume", "controls", "phases"}
    rest = {each.name: getattr(recipe, each.name) for each in fields(recipe)}
    return repr([value for name, value in rest.items() if name not in free])


def shared_phases(recipes: Sequence[Recipe]) -> list[str]:
    """Return the names of the initial phases that all recipes have in common.

    The list is empty if the recipes differ in anything except phases, controls and seeds.
    """
    if len(set(map(_apart_from_phases, recipes))) > 1:
        return []
    alike: list[str] = []
    for told in zip(*(each.phases.items() for each in recipes), strict=False):
        if any(each != told[0] for each in told) or told[0][1].control:
            break
        alike.append(told[0][0])
    return alike if len(alike) < min(len(each.phases) for each in recipes) else alike[:-1]


def shared_recipe(recipe: Recipe, folder: Path, shared: InitialPhases) -> Recipe:
    """Return the recipe of the initial phases that arms have in common."""
    return replace(
        recipe,
        runs=folder / shared.folder,
        name=f"seed-{recipe.seed}",
        phases={name: recipe.phases[name] for name in shared.phases},
        controls=False,
    )


def _run_shared(
    recipe: Recipe, folder: Path, shared: InitialPhases, processes: DistributedContext
) -> SharedPhases:
    first = shared_recipe(recipe, folder, shared)
    if processes.broadcast(not is_done(first)):
        run_recipe(resumed(first))
    return SharedPhases(first.folder, shared.phases)


def resumed(recipe: Recipe) -> Recipe:
    """Return the recipe with `resume` set if its folder contains a run."""
    return replace(recipe, resume=(recipe.folder / "recipe.json").exists())


def is_done(recipe: Recipe) -> bool:
    """Return whether the run has ended, and the recipe adds no steps or controls to it."""
    return (recipe.folder / "report.html").exists() and not is_extended(recipe)


def _minutes(folder: Path) -> float:
    """Return the minutes of training of all runs, counting shared phases once."""
    seconds = 0.0
    for path in folder.glob("*/*/results.json"):
        told = Results(path).seconds
        own = (name for name in told if not (path.parent / name).is_symlink())
        seconds += sum(told[name] for name in own)
    return seconds / 60


# ---------------------------------------------------------------------- the table


def _report(base: Recipe, runs: Sequence[SweepRun], failed: Mapping[str, str]) -> None:
    metrics = table_metrics(base)
    rows = sweep_rows(runs, metrics)
    write_text(base.folder / "sweep.json", json.dumps(rows, indent=2) + "\n")
    labels = {"arm": list(rows), "seeds": [_seeds(arm, row, runs) for arm, row in rows.items()]}
    columns = {name: [_cell(row["metrics"][name]) for row in rows.values()] for name in metrics}
    console = Console()
    title = "Held-out episodes after the last phase, greedy"
    for table in fitting_tables(title, labels, columns, console.width):
        console.print(table)
    for run, problem in failed.items():
        console.print(rich_text(f"{run} failed: {problem}"))


def _seeds(arm: str, row: Mapping[str, Any], runs: Sequence[SweepRun]) -> str:
    """Return how many of the seeds of an arm were run."""
    wanted = sum(run.arm == arm for run in runs)
    return f"{len(row['seeds'])} of {wanted}" if row["seeds"] else "not run"


def sweep_rows(runs: Sequence[SweepRun], metrics: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return, for each arm, the seeds that were run and the values of each metric by seed.

    The value of a seed is the mean over environments of the greedy scores after the last phase that
    is not a control.
    """
    rows: dict[str, dict[str, Any]] = {}
    for run in runs:
        row = rows.setdefault(run.arm, {"seeds": [], "metrics": {name: [] for name in metrics}})
        if not is_done(run.recipe):
            continue
        row["seeds"].append(run.recipe.seed)
        for name in metrics:
            row["metrics"][name].append(_final(run.recipe, name))
    return rows


def _final(recipe: Recipe, metric: str) -> float | None:
    scores = Results(recipe.folder / "results.json").scores[f"after {recipe.last_phase}"]
    values = [
        score for ways in scores.values() if (score := ways["greedy"].value(metric)) is not None
    ]
    return float(np.mean(values)) if values else None


def _cell(values: Sequence[float | None]) -> str:
    """Return the mean over seeds and, for several seeds, the lowest and the highest value."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    spread = f" [{min(known):.3f}, {max(known):.3f}]" if len(known) > 1 else ""
    return f"{np.mean(known):.3f}{spread}"


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a nested table with the changes of another table."""
    result = dict(table)
    for key, value in changes.items():
        inner = result.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        result[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return result
