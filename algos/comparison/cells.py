"""Reads and writes finished cells: the results of one algorithm on one task with one seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt, TypeAdapter

from visenv.checksums import sealed, unsealed
from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.errors import DataError
from visenv.files import output_folder, write_text

Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
Seconds = Annotated[FiniteFloat, Field(ge=0)]


@dataclass(frozen=True)
class Accuracy:
    """Holds the headline metric of held-out episodes, 0 to 1, a mean over environments.

    Attributes:
        greedy: The metric with temperature 0.
        sampled: The metric with the temperature of the recipe.
    """

    greedy: Share
    sampled: Share


@dataclass(frozen=True)
class CurvePoint:
    """Represents one evaluation during training.

    Attributes:
        episodes: Number of episodes that the policy has learned from since the warm-up.
        seconds: Processor seconds of the training steps since the warm-up.
        accuracy: The greedy headline metric.
    """

    episodes: NonNegativeInt
    seconds: Seconds
    accuracy: Share


@dataclass(frozen=True)
class ComparisonCell:
    """Holds the results of one algorithm on one task with one seed.

    Attributes:
        algorithm: The name of the algorithm, ``"filtered_sft"``, or ``module:Class``.
        task: The name of the task.
        ability: The ability that a policy learns on the task.
        seed: The seed of the run.
        num_generations: The size of groups if it differs from that of the task, or None.
        settings: The checksum of the settings of the task (`TaskRecipes.digest`).
        metric: The headline metric.
        held_out_episodes: Number of held-out episodes of each environment in `teacher`, `warm_up`
            and `final`.
        teacher: Accuracy of the teacher, or None if the oracle plays the demonstrations.
        warm_up: Accuracy after SFT, with which every algorithm starts.
        final: Accuracy after training.
        curve: The evaluations from the end of the warm-up to the end of training.
        warm_up_steps: Number of steps of SFT.
        warm_up_seconds: Processor seconds of the steps of SFT.
        steps: Number of training steps.
        episodes: Number of episodes that training used; a demonstration counts each time.
        seconds: Processor seconds of the training steps, without evaluations.
        threads: Number of threads of the policy.
        provenance: The time, versions and commit (`visenv.provenance.provenance`).
    """

    algorithm: str
    task: str
    ability: str
    seed: int
    num_generations: PositiveInt | None
    settings: str
    metric: str
    held_out_episodes: PositiveInt
    teacher: Accuracy | None
    warm_up: Accuracy
    final: Accuracy
    curve: tuple[CurvePoint, ...]
    warm_up_steps: PositiveInt
    warm_up_seconds: Seconds
    steps: PositiveInt
    episodes: PositiveInt
    seconds: Seconds
    threads: PositiveInt
    provenance: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Return the name of the algorithm with the size of groups, the row of the table."""
        return label_of(self.algorithm, self.num_generations)

    def write(self, folder: Path) -> None:
        """Write the cell to a folder of results.

        The file appears when it is complete and on the disk.
        """
        path = cell_file(folder, self.label, self.task, self.seed)
        for created in (folder, path.parent):
            output_folder(created)
        write_text(path, json.dumps(sealed(asdict(self)), indent=2) + "\n")


def label_of(algorithm: str, num_generations: int | None) -> str:
    """Return the name of an algorithm with the size of its groups, if it is given."""
    return algorithm if num_generations is None else f"{algorithm}, groups of {num_generations}"


def folder_name(label: str) -> str:
    """Return the name of the folder of an algorithm on any file system."""
    return label.replace(", ", "-").replace(" ", "-").replace(":", "-")


def cell_file(folder: Path, label: str, task: str, seed: int) -> Path:
    """Return the file of a cell in a folder of results."""
    return folder / folder_name(label) / f"{task}-seed-{seed}.json"


def read_cell(path: Path) -> ComparisonCell:
    """Read a cell.

    Raises:
        DataError: If the file contains no cell or has changed since it was written.
    """
    try:
        return TypeAdapter(ComparisonCell).validate_python(unsealed(read_json_at(path)))
    except WRONG_VALUES as error:
        raise DataError(f"{path} contains no cell of visenv compare: {error}") from error


def read_cells(folder: Path) -> list[ComparisonCell]:
    """Read all cells of a folder, in the order of their files.

    Raises:
        DataError: If a file contains no cell, or the cells of a task have different settings.
    """
    cells = [read_cell(path) for path in sorted(folder.glob("*/*-seed-*.json"))]
    known: dict[str, str] = {}
    for cell in cells:
        if known.setdefault(cell.task, cell.settings) != cell.settings:
            raise DataError(
                f"The cells of {cell.task} in {folder} have different settings; delete the older "
                "ones, or use another folder with --out."
            )
    return cells
