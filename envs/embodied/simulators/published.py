"""Contains the common parts of the published tasks of EB-ALFRED and EB-Habitat."""

from __future__ import annotations

from dataclasses import replace

from visenv.data.open import open_data
from visenv.data.source import IndexedSource, Source, is_indexed
from visenv.types import Sample

from ..datasets.published import PublishedTruth
from ..ground_truth import HouseTruth
from ..world.goals import Goal


class LabeledTasks:
    """Adds the label ``simulator`` with the name of the simulator to published tasks.

    Args:
        tasks: The published tasks, without the label.
        simulator: The simulator and its player.
    """

    ground_truth = PublishedTruth

    def __init__(self, tasks: IndexedSource, simulator: str) -> None:
        self.tasks = tasks
        self.simulator = simulator

    def __len__(self) -> int:
        """Return the number of tasks."""
        return len(self.tasks)

    def __getitem__(self, index: int) -> Sample:
        """Return a task."""
        sample = self.tasks[index]
        truth = sample.truth_as(PublishedTruth)
        labels = {**truth.labels, "simulator": self.simulator}
        return replace(sample, ground_truth=replace(truth, labels=labels))


def open_published(data: str | Source, simulator: str) -> LabeledTasks:
    """Return the published tasks of a folder or source, labeled with the name of the simulator."""
    tasks = open_data(data) if isinstance(data, str) else data
    assert is_indexed(tasks)
    return LabeledTasks(tasks, simulator)


def house_truth(published: PublishedTruth, dialect: str, goal: Goal) -> HouseTruth:
    """Return a ground truth with the fields of a task that the environment reads."""
    return HouseTruth(
        seed=0,
        dialect=dialect,
        subset=published.subset,
        split="eval",
        rooms=0,
        kinds=0,
        extra=0,
        lookalikes=0,
        fixtures=(),
        tasks=(),
        longest_plan=0,
        types=(),
        attributes=(),
        task=published.task,
        goal=goal,
        plan=(),
        labels=published.labels,
    )
