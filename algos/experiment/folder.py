"""Locks the folder of a run, checks it, and links the phases that the run shares with others."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from visenv.checksums import sealed, unsealed
from visenv.decoding.json_text import read_json_at
from visenv.disk import disk_errors, sync
from visenv.errors import DiskError, RunError
from visenv.files import write_text
from visenv.launcher import is_first
from visenv.terminal import rich_text

from ..trainer.phase_folder import locked
from .curves import BEFORE, TEACHER
from .extension import RECIPE_FILE, apply_changes, changes_of, write_recipe
from .recipe import Recipe

_NO_LINKS = (
    "The runs of a sweep share phases by symbolic links, and the file system may have none: use a "
    "folder on another one with --runs."
)


@contextmanager
def claimed(recipe: Recipe) -> Iterator[Path]:
    """Lock the folder of the run, and remove it if the run could not start.

    The settings of a run that is resumed are replaced by those of the recipe, if they may change.
    """
    folder = recipe.folder
    if not is_first():
        yield folder
        return
    is_new = not folder.exists()
    with locked(folder):
        changes = check_folder(recipe)  # again, now that no other process can write
        if not (folder / RECIPE_FILE).exists():
            write_recipe(recipe)
            for parent in (folder.parent, folder.parent.parent):
                sync(parent)
        elif changes:
            apply_changes(recipe)
            for change in changes:
                Console().print(rich_text(f"Changed setting: {change}"))
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
            _link(target, os.path.relpath(path, folder))
    if (folder / "results.json").exists():
        return
    kept = unsealed(read_json_at(shared / "results.json"))
    labels = {BEFORE, TEACHER, *(f"after {name}" for name in phases)}
    kept["scores"] = {label: kept["scores"][label] for label in kept["scores"] if label in labels}
    for what in ("steps", "seconds"):
        kept[what] = {name: kept[what][name] for name in phases}
    write_text(folder / "results.json", json.dumps(sealed(kept), indent=2) + "\n")


def _link(path: Path, target: str) -> None:
    try:
        with disk_errors(path):
            path.symlink_to(target)
    except DiskError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        raise error.with_advice(_NO_LINKS) from error


def check_folder(recipe: Recipe) -> list[str]:
    """Check that the folder is free, or that it contains this recipe and the run is resumed.

    Returns:
        A sentence about each setting of the run that has changed and may change.

    Raises:
        RunError: If neither is the case.
    """
    if not is_first():
        return []
    folder = recipe.folder
    if recipe.resume:
        return changes_of(recipe)
    if folder.exists() and any(each.name != "run.lock" for each in folder.iterdir()):
        raise RunError(
            f"{folder} exists already. Continue it with --resume, or choose another --name."
        )
    return []
