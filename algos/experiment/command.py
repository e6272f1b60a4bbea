"""Implements the command `visenv train`."""

from __future__ import annotations

from collections.abc import Sequence

from .experiment import run_recipe
from .files import read_recipe, read_sweep, recipe_path
from .sweep import run_sweep

_MAIN_JOB = "zoom_tiny"


def train(words: Sequence[str]) -> None:
    """Run ``visenv train [RECIPE] [--sweep] [options]``.

    Args:
        words: A recipe, that is a TOML file or the name of a shipped one, and options that change
            it. Without a recipe: the main job. With ``--sweep`` the arms of the recipe are run.
    """
    given = list(words)
    path = recipe_path(given.pop(0) if given and not given[0].startswith("-") else _MAIN_JOB)
    if "--sweep" in given:
        given.remove("--sweep")
        run_sweep(*read_sweep(path, given))
    else:
        run_recipe(read_recipe(path, given))
