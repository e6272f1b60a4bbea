"""Creates an unlimited number of tasks in procedural houses."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from visenv.types import Sample

from .ground_truth import HouseTruth
from .world.tasks import TaskOptions, make_task


class HouseTasks:
    """Creates tasks with exact ground truth.

    Args:
        options: The options from which tasks are drawn.
        simulator: The name of the simulator, for the label ``simulator``.
    """

    ground_truth = HouseTruth

    def __init__(self, options: TaskOptions, simulator: str = "house") -> None:
        self.options = options
        self.simulator = simulator

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return the task that the generator draws."""
        return house_sample(int(rng.integers(2**62)), self.options, self.simulator)


def house_sample(seed: int, options: TaskOptions, simulator: str = "house") -> Sample:
    """Return the task of a seed as a sample."""
    task = make_task(seed, options)
    truth = HouseTruth(
        seed=seed,
        **asdict(options),
        task=task.kind,
        goal=task.goal,
        plan=task.plan,
        targets=task.targets,
        others=task.lookalikes,
        labels={"subset": task.subset, "task": task.kind, "simulator": simulator},
    )
    name = f"house-{options.dialect}-{options.split}-{task.subset}-{seed}"
    return Sample(name, task.instruction, kind=task.subset, ground_truth=truth)
