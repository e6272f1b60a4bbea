"""Implements the command `visenv train`."""

from __future__ import annotations

from collections.abc import Sequence

from visenv.errors import ConfigurationError

from ..trainer.launch import launch
from .experiment import run_recipe
from .recipe import Recipe
from .recipe_files import default_recipe, read_recipe, read_sweep, recipe_path
from .sweep import run_sweep

_MAIN_JOB = "zoom_tiny"


def train(words: Sequence[str]) -> None:
    """Run ``visenv train [RECIPE | --env ENVIRONMENT] [--sweep [ARM ...]] [options]``.

    Args:
        words: A recipe, that is a TOML file or the name of a shipped one, and options that change
            it. With ``--env``, the default recipe for this environment. Without both, the main job.
            With ``--sweep`` all arms of the recipe are run, or the arms that follow ``--sweep``.

    Raises:
        SystemExit: If one of several processes fails, with its status.
        UnknownNameError: If there is no such recipe, environment or arm.
        ConfigurationError: If both a recipe and an environment are given.
    """
    given = list(words)
    env = take_env(given)
    if env is not None:
        recipe = default_recipe(env, given)
        if not _launch(recipe, words):
            run_recipe(recipe)
        return
    path = recipe_path(given.pop(0) if given and not given[0].startswith("-") else _MAIN_JOB)
    if "--sweep" in given:
        arms = _take_arms(given)
        recipe, runs, minutes = read_sweep(path, given)
        if not _launch(recipe, words):
            run_sweep(recipe, runs, minutes, arms)
    else:
        recipe = read_recipe(path, given)
        if not _launch(recipe, words):
            run_recipe(recipe)


def _launch(recipe: Recipe, words: Sequence[str]) -> bool:
    """Run the command in the processes of the recipe; return False if this process runs it."""
    timeout = max(phase.timeout for phase in recipe.phases.values())
    return launch(words, recipe.num_processes, timeout)


def take_env(words: list[str]) -> str | None:
    """Remove ``--env`` and its value; return the value, or None if there is no such option."""
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option != "--env":
            continue
        left = words[:place] + words[place + (1 if equals else 2) :]
        if not equals:
            value = "".join(words[place + 1 : place + 2])
        if not value or value.startswith("-"):
            raise ConfigurationError("--env needs the name of an environment, as module:function.")
        if left and not left[0].startswith("-"):
            raise ConfigurationError(
                f"Give either a recipe or --env, got {left[0]!r} and --env {value}. A recipe names "
                "its own environments."
            )
        words[:] = left
        return value
    return None


def _take_arms(words: list[str]) -> list[str]:
    """Remove ``--sweep`` and the names of arms that follow it; return the names."""
    start = words.index("--sweep")
    end = start + 1
    while end < len(words) and not words[end].startswith("-"):
        end += 1
    arms = words[start + 1 : end]
    del words[start:end]
    return arms
