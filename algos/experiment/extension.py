"""Continues a run with other settings: longer phases, another executor, other trackers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any

from visenv.checksums import sealed, unsealed
from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.errors import RunError
from visenv.files import write_text
from visenv.old_names import with_new_names

from ..trainer.changes import RECIPE_SETTINGS, Difference, compare, differences
from .recipe import Recipe
from .results import Results

RECIPE_FILE = "recipe.json"


def write_recipe(recipe: Recipe) -> None:
    """Write the settings of a run to its folder."""
    write_text(recipe.folder / RECIPE_FILE, json.dumps(sealed(_settings(recipe)), indent=2) + "\n")


def changes_of(recipe: Recipe) -> list[str]:
    """Compare a recipe with the run that it continues.

    Returns:
        A sentence about each setting that has changed and may change.

    Raises:
        RunError: If the folder contains no run, or another setting has changed.
    """
    changes = compare(_saved_settings(recipe), _settings(recipe), RECIPE_SETTINGS)
    if changes.refused:
        raise RunError(
            f"{recipe.folder} was started with other settings: {'; '.join(changes.refused)}."
        )
    return changes.allowed


def check_same_steps(recipe: Recipe) -> None:
    """Check that every phase of a run that other runs share has its former number of steps.

    Raises:
        RunError: If a phase has.
    """
    changed = _changed_steps(recipe)
    if changed:
        said = "; ".join(map(str, changed.values()))
        raise RunError(f"{recipe.folder} belongs to several runs, so it cannot change: {said}.")


def apply_changes(recipe: Recipe) -> None:
    """Save the new settings of a run, and let its longer phases continue.

    The results of a longer phase are removed, because the run will measure them again.

    Raises:
        RunError: If another phase has used the weights of a phase that is now longer, or a phase
            has taken more steps than it now has.
    """
    other_steps = _changed_steps(recipe).keys()
    results = Results(recipe.folder / "results.json")
    for name in other_steps & results.steps.keys():
        _check_steps(recipe, name, results.steps[name])
    longer = {name for name in other_steps if results.steps.get(name) != recipe.phases[name].steps}
    if longer:
        opened = _opened(recipe, longer, results)
        results.reopen(opened, baselines=_starts_rl(recipe, opened))
    if is_extended(recipe):
        (recipe.folder / "report.html").unlink(missing_ok=True)  # a sweep reads it as the end
    write_recipe(recipe)


def is_extended(recipe: Recipe) -> bool:
    """Return whether a recipe has longer phases or further controls than the run it continues."""
    saved = _saved_settings(recipe)
    if any(phase.steps > saved["phases"][name]["steps"] for name, phase in recipe.phases.items()):
        return True
    if not (recipe.controls and saved["controls"]):
        return recipe.controls
    return not set(recipe.evaluation.controls).issubset(saved["evaluation"]["controls"])


def _changed_steps(recipe: Recipe) -> dict[str, Difference]:
    """Return the phases that have another number of steps than in the run, by name."""
    return {
        each.path[1]: each
        for each in differences(_saved_settings(recipe), _settings(recipe))
        if len(each.path) == 3 and (each.path[0], each.path[2]) == ("phases", "steps")
    }


def _check_steps(recipe: Recipe, name: str, taken: int) -> None:
    steps, folder = recipe.phases[name].steps, recipe.folder / name
    if steps < taken:
        raise RunError(
            f"The phase {name} has taken {taken} steps already, so phases.{name}.steps must be at "
            f"least {taken}; got {steps}."
        )
    if folder.is_symlink():
        raise RunError(
            f"The phase {name} of {recipe.folder} belongs to several runs, so phases.{name}.steps "
            f"cannot change; it was {taken} and is {steps}."
        )


def _opened(recipe: Recipe, longer: Collection[str], results: Results) -> list[str]:
    """Return the phases that continue: the longer ones, and those that depend on them."""
    opened: list[str] = []
    for name, phase in recipe.phases.items():
        sources = (recipe.begins_with(name), phase.reference, phase.demonstrations.samples_of)
        source = next((each for each in sources if each in opened), None)
        folder = recipe.folder / name
        if source is not None and folder.exists():
            raise RunError(
                f"phases.{source}.steps cannot change, because the phase {name} has started from "
                f"{source}: delete {folder} to train {name} again, or start a new run."
            )
        if source is not None or name in longer or phase.as_long_as in opened:
            opened.append(name)
    return opened


def _starts_rl(recipe: Recipe, opened: Collection[str]) -> bool:
    """Return whether the first phase of RL starts with the weights of one of the opened phases.

    Baselines are scored with these weights, before that phase.
    """
    first = next((name for name, phase in recipe.phases.items() if not phase.is_sft), None)
    return first is not None and recipe.begins_with(first) in opened


def _settings(recipe: Recipe) -> dict[str, Any]:
    told = asdict(recipe)
    for changing in ("resume", "runs", "name"):
        del told[changing]
    settings: dict[str, Any] = json.loads(json.dumps(told, default=str))
    return settings


def _saved_settings(recipe: Recipe) -> dict[str, Any]:
    path = recipe.folder / RECIPE_FILE
    if not path.exists():
        raise RunError(f"There is no run {recipe.folder} to resume: start it without --resume.")
    try:
        saved = with_new_names(unsealed(read_json_at(path)))
        if not all(isinstance(phase["steps"], int) for phase in saved["phases"].values()):
            raise TypeError("a phase has no steps")
    except WRONG_VALUES as error:
        raise RunError(f"{path} is not the recipe of a run: {error}") from error
    return _with_new_fields(saved, _settings(recipe), recipe)


def _with_new_fields(saved: Mapping[str, Any], now: Mapping[str, Any], told: Any) -> dict[str, Any]:
    """Return saved settings with the fields that only the current version of visenv has.

    A field is added if it has its default value, so that a run of an earlier version continues.
    `told` is the dataclass, or the mapping of names, of which `now` contains the values.
    """
    known = told if isinstance(told, Mapping) else vars(told)
    completed = dict(saved)
    for name, value in now.items():
        inner = known[name]
        if name not in saved:
            if is_dataclass(told) and inner == _default(told, name):
                completed[name] = value
        elif isinstance(saved[name], Mapping) and isinstance(value, Mapping):
            completed[name] = _with_new_fields(saved[name], value, inner)
    return completed


def _default(told: Any, name: str) -> Any:
    (found,) = [each for each in fields(told) if each.name == name]
    return found.default if found.default_factory is MISSING else found.default_factory()
