"""Compares the settings of a run with those with which it is resumed.

Three kinds of settings are distinguished. Some only concern the files and the machine, and change
no result. Some may change the results of the coming steps, for example by rounding, but a person
needs them to continue a run at all: on another machine, or for more steps. Both kinds are allowed
and printed. All other settings define the run and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from typing_extensions import override

MAY_DIFFER = "The results may differ from those of an uninterrupted run"

_ROUNDING = "sums are rounded in another order"
_SCHEDULE = "the learning rate follows the schedule of the new number of steps"

CHECKPOINT_SETTINGS: Mapping[str, str] = {
    "config.steps": "",
    "config.rollouts.concurrency": _ROUNDING,
    "config.optimization.tokens_per_batch": _ROUNDING,
    "config.optimization.patches_per_batch": _ROUNDING,
}
"""The settings of a trainer that may change, and why the results may differ; ``""`` if not.

`visenv.algos.trainer.checkpoint.identify` leaves out the settings of saving and the timeout.
"""

RECIPE_SETTINGS: Mapping[str, str] = {
    "trackers": "",
    "controls": "",
    "evaluation.controls": "",
    "evaluation.metrics": "",
    "evaluation.every": "the best weights are those of other evaluations",
    "evaluation.every_episodes": "the best weights are those of other evaluations",
    "phases.*.evaluate_every": "the best weights are those of other evaluations",
    "callbacks": "a callback can stop a phase",
    "executor": "`ray` is not bitwise reproducible",
    "num_processes": _ROUNDING,
    "model.device": _ROUNDING,
    "model.options.threads": _ROUNDING,
    "phases.*.steps": "",
    "phases.*.timeout": "",
    "phases.*.saving.*": "",
    "phases.*.rollouts.sleep": "",
    "phases.*.rollouts.engine_restarts": "",
    "phases.*.rollouts.episode_retries": "another number of episodes can be aborted",
    "phases.*.rollouts.concurrency": _ROUNDING,
    "phases.*.optimization.tokens_per_batch": _ROUNDING,
    "phases.*.optimization.patches_per_batch": _ROUNDING,
}
"""The settings of a recipe that may change, and why the results may differ; ``""`` if not."""


class Difference(NamedTuple):
    """Holds a setting that has changed.

    Attributes:
        path: The names of the tables and of the setting, as in ``("config", "seed")``.
        before: The value of the run.
        after: The value with which it is resumed.
    """

    path: tuple[str, ...]
    before: Any
    after: Any

    @override
    def __str__(self) -> str:
        return f"{'.'.join(self.path)} was {self.before!r} and is {self.after!r}"


class Changes(NamedTuple):
    """Holds the differences between two sets of settings.

    Attributes:
        refused: A description of each change that is not allowed.
        allowed: A sentence about each change that is allowed.
    """

    refused: list[str]
    allowed: list[str]


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], within: tuple[str, ...] = ()
) -> list[Difference]:
    """Return each difference between two nested mappings."""
    found: list[Difference] = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += differences(before, after, (*within, key))
        elif before != after:
            found.append(Difference((*within, key), before, after))
    return found


def compare(old: Mapping[str, Any], new: Mapping[str, Any], settings: Mapping[str, str]) -> Changes:
    """Compare the settings of a run with those with which it is resumed.

    Args:
        old: The settings of the run, JSON-like.
        new: The settings with which it is resumed.
        settings: `CHECKPOINT_SETTINGS` or `RECIPE_SETTINGS`.
    """
    refused: list[str] = []
    allowed: list[str] = []
    for each in differences(old, new):
        pattern = next((name for name in settings if _matches(each.path, name)), None)
        if pattern is None:
            refused.append(str(each))
            continue
        reason = settings[pattern] or _of_schedule(each.path, new)
        result = f"{MAY_DIFFER}: {reason}." if reason else "The results do not depend on it."
        allowed.append(f"{each}. {result}")
    return Changes(refused, allowed)


def _matches(path: tuple[str, ...], pattern: str) -> bool:
    """Return whether a path has the names of a pattern, in which ``*`` is any one name."""
    names = pattern.split(".")
    return len(names) == len(path) and all(
        name in ("*", given) for name, given in zip(names, path, strict=True)
    )


def _of_schedule(path: tuple[str, ...], settings: Mapping[str, Any]) -> str:
    """Return why another number of steps changes the results, or ``""`` for a constant rate."""
    if path[-1] != "steps":
        return ""
    for table in path[:-1]:
        settings = settings[table]
    return "" if settings["optimization"]["schedule"] == "constant" else _SCHEDULE
