"""Adapts the default recipe to an environment (`visenv train --env NAME`)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from visenv.env import VisEnv
from visenv.registration import load
from visenv.teacher import DEFAULT_TEACHER

from .files import read_recipe, recipe_path
from .parts import training_mixture
from .recipe import Recipe

DEFAULT_RECIPE = "any_environment"
"""The recipe that fits any environment; the name of its environment is `_NAME`."""

_NAME, _WARM_UP = "task", "warm-up"
_TINY = "tiny"
_RANDOM_EPISODES, _TOP_SHARE = 4096, 0.1


def default_recipe(env: str, words: Sequence[str] = ()) -> Recipe:
    """Return the default recipe for an environment.

    Args:
        env: The environment; see `visenv.registration.env_spec`.
        words: Command-line options that override fields of the recipe.

    Raises:
        ConfigurationError: If there is no such environment, it cannot be made, or an option has an
            invalid value.
    """
    path = recipe_path(DEFAULT_RECIPE)
    changes: dict[str, Any] = {
        "name": re.sub(r"[^\w.-]+", "-", env).strip("-."),
        "environments": {_NAME: {"id": env}},
    }
    recipe = read_recipe(path, words, changes)
    make_env = training_mixture(recipe, recipe.phases[_WARM_UP]).make_envs[_NAME]
    with closing(make_env()) as made:
        base = made.unwrapped
        assert isinstance(base, VisEnv)  # checked by `training_mixture`
        if _TINY in base.presets and "preset" in _parameters(env):
            changes["environments"][_NAME]["options"] = {"preset": _TINY}
        changes["phases"] = {_WARM_UP: {"demonstrations": demonstrations_of(base)}}
    return read_recipe(path, words, changes)


def demonstrations_of(env: VisEnv) -> dict[str, Any]:
    """Return the player of the demonstrations, as fields of `DemonstrationConfig`.

    The player is the first teacher of the environment, its oracle, or, if the environment has
    neither, the random policy.

    Args:
        env: The environment without wrappers.
    """
    if env.teachers:
        return {"teacher": DEFAULT_TEACHER}
    if env.has_oracle:
        return {"player": "oracle"}
    return {"player": "random", "episodes": _RANDOM_EPISODES, "top_share": _TOP_SHARE}


def _parameters(env: str) -> Sequence[str]:
    """Return the names of the arguments of an environment."""
    return list(inspect.signature(load("environment", env)).parameters)
