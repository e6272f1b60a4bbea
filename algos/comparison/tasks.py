"""Defines the suite of tiny tasks, and derives the recipe of a task from a recipe of visenv."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from visenv.errors import ConfigurationError, RunError, UnknownNameError

from ..experiment.recipe import Phase, Recipe
from ..experiment.recipe_files import read_recipe, recipe_path

WARM_UP, TRAINING = "warm-up", "training"
"""The two phases of a cell: SFT, whose weights all algorithms share, and the algorithm itself."""

REFERENCE = "grpo"
"""The algorithm that the others are compared with."""

_EVALUATIONS, _CURVE_EPISODES = 4, 64
"""Number of evaluations during training, and of held-out episodes in each of them."""


@dataclass(frozen=True)
class Task:
    """Describes a task of the suite.

    Attributes:
        ability: The ability that a policy learns on the task.
        recipe: The recipe that the task is derived from, a name or a TOML file.
        steps: Number of steps of an algorithm, planned such that a cell takes at most two minutes
            on two cores; None takes that of the recipe.
    """

    ability: str
    recipe: str
    steps: int | None = None


TASKS: Mapping[str, Task] = {
    "zoom_vqa": Task("where to look", "zoom_tiny", 30),
    "arft_search": Task("search for the whole name", "visual_arft_search_tiny", 40),
    "arm_doc": Task("which page", "arm_thinker_tiny", 24),
    "arm_if": Task("whether to trust a tool", "arm_if_tiny", 20),
    "arft_coding": Task("repair, then read", "visual_arft_coding_tiny", 40),
    "mags_zoom": Task("how often to look", "mags_rl_tiny", 24),
    "argos_image": Task("where objects are", "argos_tiny", 30),
    "house": Task("a plan of many steps", "embodied_tiny", 24),
}
"""The tasks of the suite, by name."""
QUICK_TASKS = ("zoom_vqa", "arft_search")
"""The tasks of ``--quick``."""


@dataclass(frozen=True)
class TaskRecipes:
    """Holds the settings of a task, from which those of every cell are made.

    Attributes:
        name: The name of the task.
        ability: The ability that a policy learns on the task.
        recipe: The recipe with the phases `WARM_UP` and `TRAINING`, the latter with GRPO.
        filtered: The phase of SFT on the demonstrations with the highest reward; None if the recipe
            of the task has none.
    """

    name: str
    ability: str
    recipe: Recipe
    filtered: Phase | None

    @property
    def digest(self) -> str:
        """Return a checksum of the settings that influence scores, apart from the algorithm.

        Settings with their default values are left out, so that a new setting changes no checksum.
        """
        recipe = self.recipe
        model = replace(recipe.model, options={**recipe.model.options, "threads": None})
        parts = (
            recipe.environments,
            recipe.mixture,
            recipe.sampler,
            recipe.phases,
            recipe.evaluation,
        )
        told = [_without_defaults(part) for part in (*parts, model, self.filtered)]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _without_defaults(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_defaults(part) for name, part in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    default: Any = type(value)()
    told = {each.name: getattr(value, each.name) for each in fields(value)}
    return {
        name: _without_defaults(part)
        for name, part in told.items()
        if part != getattr(default, name)
    }


def read_task(name: str) -> TaskRecipes:
    """Return the settings of a task.

    Args:
        name: A key of `TASKS`, or a TOML file of a recipe whose first phase is SFT and whose last
            one is RL.

    Raises:
        UnknownNameError: If there is no such task.
        ConfigurationError: If the recipe has other phases.
    """
    if name not in TASKS and not name.endswith(".toml"):
        raise UnknownNameError("task", name, TASKS)
    task = TASKS.get(name) or Task(Path(name).stem, name)
    base = read_recipe(recipe_path(task.recipe))
    first, last = next(iter(base.phases.values())), base.phases[base.last_phase]
    if not first.is_sft or last.is_sft:
        raise ConfigurationError(
            f"The recipe {task.recipe} must begin with a phase of SFT and end with a phase of RL."
        )
    training = replace(
        last,
        algorithm=REFERENCE,
        algorithm_options={},
        begins_with=WARM_UP,
        reference="",
        steps=task.steps or last.steps,
    )
    evaluation = replace(
        base.evaluation,
        every_episodes=min(_CURVE_EPISODES, base.evaluation.episodes),
        baselines=(),
        controls=(),
    )
    recipe = replace(
        base,
        phases={WARM_UP: replace(first, evaluate_every=0), TRAINING: _evaluated(training)},
        evaluation=evaluation,
        trackers=(),
    )
    return TaskRecipes(Path(name).stem, task.ability, recipe, base.phases.get("filtered-sft"))


def with_algorithm(phase: Phase, algorithm: str, num_generations: int | None) -> Phase:
    """Return the phase of RL with another algorithm and, if given, another size of groups.

    A step has as many episodes as before, in more or fewer groups.

    Raises:
        ConfigurationError: If the episodes of a step do not form whole groups.
    """
    rollouts = phase.rollouts
    size = num_generations or rollouts.num_generations
    episodes = rollouts.prompts_per_step * rollouts.num_generations
    if episodes % size:
        raise ConfigurationError(
            f"--num-generations must divide the {episodes} episodes of a step, got {size}."
        )
    rollouts = replace(rollouts, prompts_per_step=episodes // size, num_generations=size)
    return replace(phase, algorithm=algorithm, rollouts=rollouts)


def filtered_sft(task: TaskRecipes, steps: int) -> Phase:
    """Return the phase of SFT on the demonstrations with the highest reward.

    Raises:
        RunError: If the recipe of the task has no such phase.
    """
    if task.filtered is None:
        raise RunError(f"The recipe of {task.name} has no phase filtered-sft.")
    phase = replace(task.filtered, control=False, begins_with=WARM_UP, as_long_as="", steps=steps)
    return _evaluated(phase)


def _evaluated(phase: Phase) -> Phase:
    """Return the phase with `_EVALUATIONS` evaluations at equal distances."""
    return replace(phase, evaluate_every=math.ceil(phase.steps / _EVALUATIONS))
