"""Computes the number of steps of a control that gets as much time as another phase."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..trainer.metrics import METRICS, processor_seconds, read_metrics, step_seconds
from .recipe import Recipe
from .results import Results


def steps_as_long(
    name: str, recipe: Recipe, folder: Path, results: Results, *, on_cpu: bool
) -> int:
    """Return the number of steps of a phase of SFT that fit into the time of another phase.

    The time of a step is taken from the phase whose weights this phase starts with. The time of
    sampling the demonstrations is included. On a CPU, it is the processor time, which does not
    depend on other work of the machine. A GPU or an engine works outside of the processor time of
    this process, so the time of the clock is used.

    Args:
        name: The phase with `Phase.as_long_as`.
        recipe: The recipe.
        folder: The folder of the run.
        results: The results of the finished phases.
        on_cpu: Whether the policy computes on a CPU.
    """
    phase = recipe.phases[name]
    before, other = (_metrics(folder / part) for part in (phase.begins_with, phase.as_long_as))
    is_measured = all("seconds/processor" in row for row in (*before, *other))
    in_process = on_cpu and recipe.sampler.name == "transformers"
    # An earlier version of visenv did not measure processor time.
    seconds = processor_seconds if in_process and is_measured else step_seconds
    a_step = sum(map(seconds, before)) / results.steps[phase.begins_with]
    left = sum(map(seconds, other)) - results.sampling_seconds.get(name, 0.0)
    return max(1, round(left / a_step))


def seconds_of(folder: Path) -> float:
    """Return the seconds of the steps of a phase, including those before an interruption."""
    return float(sum(map(step_seconds, _metrics(folder))))


def _metrics(folder: Path) -> list[dict[str, Any]]:
    return [row for _, row in read_metrics(folder / METRICS)]
