"""Locks the folder of a run, checks it, and links the phases that the run shares with others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.errors import RunError
from visenv.files import write_text
from visenv.old_names import with_new_names

from ..trainer.distributed import is_first
from ..trainer.identity import differences
from ..trainer.lock import locked
from .recipe import Recipe


@contextmanager
def claimed(recipe: Recipe) -> Iterator[Path]:
    """Lock the folder of the run, and remove it if the run could not start."""
    folder = recipe.folder
    if not is_first():
        yield folder
        return
    is_new = not folder.exists()
    with locked(folder):
        check_folder(recipe)  # again, now that no other process can write
        if not (folder / "recipe.json").exists():
            write_text(folder / "recipe.json", _as_json(recipe))
        try:
            yield folder
        except Exception:
            if is_new and not any(folder.glob("*/metrics.jsonl")):
                shutil.rmtree(folder)
            raise


def link_shared(shared: Path, folder: Path, phases: Sequence[str]) -> None:
    """Link finished phases and scores of another run to a run that starts with these phases.

    Args:
        shared: The folder of the other run.
        folder: The folder of the run.
        phases: The names of the phases, which are the first phases of the other run.
    """
    for path in [*shared.glob("model"), *(shared / name for name in phases)]:
        target = folder / path.name
        if not target.exists():
            target.symlink_to(os.path.relpath(path, folder))
    if (folder / "results.json").exists():
        return
    kept = read_json_at(shared / "results.json")
    labels = {"before training", *(f"after {name}" for name in phases)}
    kept["scores"] = {label: kept["scores"][label] for label in kept["scores"] if label in labels}
    for what in ("steps", "seconds"):
        kept[what] = {name: kept[what][name] for name in phases}
    write_text(folder / "results.json", json.dumps(kept, indent=2) + "\n")


def check_folder(recipe: Recipe) -> None:
    """Check that the folder is free, or that it contains this recipe and the run is resumed.

    Raises:
        RunError: If neither is the case.
    """
    if not is_first():
        return
    folder, path = recipe.folder, recipe.folder / "recipe.json"
    if not recipe.resume:
        if folder.exists() and any(each.name != "run.lock" for each in folder.iterdir()):
            raise RunError(
                f"{folder} exists already. Continue it with --resume, or choose another --name."
            )
        return
    if not path.exists():
        raise RunError(f"There is no run {folder} to resume.")
    try:
        before = with_new_names(read_json_at(path))
    except WRONG_VALUES as error:
        raise RunError(f"{path} is not the recipe of a run: {error}") from error
    now = json.loads(_as_json(recipe))
    if changes := differences(_with_new_fields(before, now, recipe), now):
        raise RunError(f"{folder} was started with other settings: {'; '.join(changes)}.")


def _with_new_fields(saved: Mapping[str, Any], now: Mapping[str, Any], told: Any) -> dict[str, Any]:
    """Return saved settings with the fields that only the current version of visenv has.

    A field is added if it has its default value, so that a run of an earlier version continues.

    Args:
        saved: The settings that the run has saved, or a table of them.
        now: The current settings, JSON-like, or the same table of them.
        told: The dataclass, or the mapping of names, of which `now` contains the values.
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


def _as_json(recipe: Recipe) -> str:
    told = asdict(recipe)
    for changing in ("resume", "runs", "name"):
        del told[changing]
    return json.dumps(told, indent=2, default=str) + "\n"
