"""Creates samples of LIBERO's tasks at their stored initial states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from visenv.errors import ConfigurationError
from visenv.presets import check_choice
from visenv.types import Episode, Sample

from ..ground_truth import LiberoTruth
from ..presets import FOUR_SUITES, SUITES

STATES = 50
"""Number of stored initial states of each task."""

_HERE = Path(__file__).parent


@cache
def task_names(suite: str) -> tuple[str, ...]:
    """Return the names of the tasks of a suite, in LIBERO's default order."""
    found: dict[str, list[str]] = json.loads((_HERE / "tasks.json").read_text(encoding="utf-8"))
    return tuple(found[suite])


def language(name: str) -> str:
    """Return the task as text, as LIBERO's benchmark derives it from the name of the task.

    The names of LIBERO-90 and LIBERO-10 begin with their scene, such as ``KITCHEN_SCENE10_``.
    """
    words = name.split("_")
    if name[0].isupper():
        scene = next(place for place, word in enumerate(words) if word.startswith("SCENE"))
        words = words[scene + 1 :]
    return " ".join(words)


_HELD_OUT_EVERY = 5
"""One of this many initial states is kept for evaluations."""


class LiberoTasks:
    """Contains a finite number of samples: tasks at initial states.

    Args:
        items: Suite, task and state of each sample.
        seed: The seed of LIBERO when a task is loaded (`LiberoTruth.seed`).
        keep_apart: Whether every fifth initial state of each task (the last one of a task with 2 to
            4 states) is only for evaluations, and the others only for training.

    Attributes:
        training_rows: The rows that are played in training; None for all.
        held_out_rows: The rows that are played in an evaluation; None for all.

    Raises:
        ConfigurationError: If there is no sample.
    """

    ground_truth: ClassVar[type] = LiberoTruth

    def __init__(
        self, items: Sequence[tuple[str, int, int]], seed: int = 0, keep_apart: bool = False
    ) -> None:
        if not items:
            raise ConfigurationError(
                "LiberoTasks needs at least one task, got an empty sequence: choose other tasks, "
                "states or another suite."
            )
        self._items = tuple(items)
        self._seed = seed
        self.training_rows: Sequence[int] | None = None
        self.held_out_rows: Sequence[int] | None = None
        held_out = _held_out(items) if keep_apart else []
        if held_out:
            self.held_out_rows = held_out
            self.training_rows = sorted({*range(len(items))} - {*held_out})

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Sample:
        suite, task, state = self._items[index]
        return Sample(
            id=f"{suite}/{task}/{state}",
            question=language(task_names(suite)[task]),
            kind=suite,
            ground_truth=LiberoTruth(suite, task, state, self._seed),
        )

    def totals(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Return the mean success over the suites, as in table 5 of the Argos paper."""
        by_suite: dict[str, list[float]] = {}
        for episode in episodes:
            by_suite.setdefault(episode.kind, []).append(episode.metrics.get("success", 0.0))
        means = [sum(scores) / len(scores) for scores in by_suite.values()]
        return {"mean of the suites": sum(means) / len(means)} if means else {}


def _held_out(items: Sequence[tuple[str, int, int]]) -> list[int]:
    """Return the rows of every fifth state of each task; with 2 to 4 states, of the last one."""
    by_task: dict[tuple[str, int], list[int]] = {}
    for row, (suite, task, _) in enumerate(items):
        by_task.setdefault((suite, task), []).append(row)
    kept = (
        rows[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY] or rows[1:][-1:] for rows in by_task.values()
    )
    return sorted(row for rows in kept for row in rows)


def open_tasks(
    name: str,
    tasks: Sequence[int] | None = None,
    states: Sequence[int] | int | None = None,
    seed: int = 0,
) -> LiberoTasks:
    """Return the samples of a suite.

    Args:
        name: A suite, ``"four_suites"`` (without LIBERO-90), ``"all"``, or ``"solved"``: the
            samples that the expert solves.
        tasks: The indices of the tasks of a suite; None selects all.
        states: The indices of the initial states, or the number of the first ones; None selects
            all. The samples of ``"solved"`` are then divided: every fifth state of a task is played
            in evaluations, and the others in training.
        seed: The seed of LIBERO when a task is loaded.

    Raises:
        ConfigurationError: If there is no such suite, task or state.
    """
    check_choice("data", name, [*SUITES, "four_suites", "all", "solved"])
    wanted = _states(states)
    if name == "solved":
        items = [item for item in _solved() if item[2] in wanted]
        known = range(max(map(len, map(task_names, SUITES))))
    else:
        suites = {"four_suites": FOUR_SUITES, "all": SUITES}.get(name, (name,))
        items = [
            (suite, task, state)
            for suite in suites
            for task in range(len(task_names(suite)))
            for state in wanted
        ]
        known = range(max(len(task_names(suite)) for suite in suites))
    if tasks is not None:
        unknown = [task for task in tasks if type(task) is not int or task not in known]
        if unknown:
            raise ConfigurationError(
                f"tasks must be numbers from 0 to {known[-1]} of {name}, got {unknown}."
            )
        items = [item for item in items if item[1] in tasks]
    return LiberoTasks(items, seed, keep_apart=name == "solved" and states is None)


def _states(states: Sequence[int] | int | None) -> Sequence[int]:
    wanted: Sequence[Any] = (
        range(STATES) if states is None else range(states) if isinstance(states, int) else states
    )
    if not wanted or any(type(each) is not int or not 0 <= each < STATES for each in wanted):
        raise ConfigurationError(f"states must be numbers from 0 to {STATES - 1}, got {states!r}.")
    return wanted


@cache
def _solved() -> tuple[tuple[str, int, int], ...]:
    found: dict[str, dict[str, list[int]]] = json.loads(
        (_HERE / "solved.json").read_text(encoding="utf-8")
    )
    return tuple(
        (suite, int(task), state)
        for suite, tasks in found.items()
        for task, states in tasks.items()
        for state in states
    )
