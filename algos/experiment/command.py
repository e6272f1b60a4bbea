"""Implements the command `visenv train`."""

from __future__ import annotations

from collections.abc import Sequence

from .experiment import run_recipe
from .files import read_recipe, read_sweep, recipe_path
from .sweep import run_sweep

_MAIN_JOB = "zoom_tiny"


def train(words: Sequence[str]) -> None:
    """Run ``visenv train [RECIPE] [--sweep [ARM ...]] [options]``.

    Args:
        words: A recipe, that is a TOML file or the name of a shipped one, and options that change
            it. Without a recipe: the main job. With ``--sweep`` all arms of the recipe are run, or
            the arms that follow ``--sweep``.

    Raises:
        UnknownNameError: If there is no such recipe or arm.
    """
    given = list(words)
    path = recipe_path(given.pop(0) if given and not given[0].startswith("-") else _MAIN_JOB)
    if "--sweep" in given:
        arms = _take_arms(given)
        run_sweep(*read_sweep(path, given), arms)
    else:
        run_recipe(read_recipe(path, given))


def _take_arms(words: list[str]) -> list[str]:
    """Remove ``--sweep`` and the names of arms that follow it; return the names."""
    start = words.index("--sweep")
    end = start + 1
    while end < len(words) and not words[end].startswith("-"):
        end += 1
    arms = words[start + 1 : end]
    del words[start:end]
    return arms
