"""Loads EB-ALFRED's tasks from ``splits.json`` and ALFRED's annotations.

``splits.json`` maps each subset to rows with ``task`` (a folder), ``repeat_idx`` and
``instruction``. The annotation of a row is ``<task>/pp/ann_<repeat_idx>.json``, in a folder
``json_2.1.0`` or in the folder of ``splits.json``; it contains the scene, the type of task and its
parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from visenv.data.rows import RowLocation, existing_folder, first_files, text_of
from visenv.decoding.json_text import read_json_file
from visenv.errors import DataError
from visenv.files import file_inside
from visenv.types import Sample

from .published import PublishedTasks, PublishedTruth, read_bytes

_FOLDERS = ("json_2.1.0", "data/json_2.1.0", ".")


class EBAlfredTasks(PublishedTasks):
    """Loads the published tasks of EB-ALFRED.

    Args:
        folder: The folder with ``splits.json``.
        subset: One of the six subsets, or ``"all"``.
        down_sample_ratio: See `PublishedTasks`.

    Raises:
        UnknownNameError: If there is no such subset.
        DataError: If there is no ``splits.json``, or no row can be used.
    """

    def __init__(
        self, folder: str | Path, subset: str = "all", down_sample_ratio: float | str = 1.0
    ) -> None:
        super().__init__(subset, down_sample_ratio)
        self.folder = existing_folder(folder)
        (file,) = first_files(self.folder, ["splits.json", "splits/splits.json"])
        splits = _json(file)
        for name in self.subsets:
            rows = splits.get(name, [])
            if not isinstance(rows, list):
                raise DataError(f"{file}: the subset {name!r} must be a list of rows.")
            for index, row in self.down_sampled(rows):
                place = RowLocation(f"{file.name}#{name}", index + 1)
                with self.listing_problems(place):
                    self.add_row(place, self._sample(name, index, row))
        self.require_rows(self.folder)

    def _sample(self, subset: str, index: int, row: Any) -> Sample:
        if not isinstance(row, dict):
            raise DataError(f"a row must be an object, got {row!r:.80}")
        task, instruction = text_of(row, "task"), text_of(row, "instruction")
        repeat = row.get("repeat_idx")
        if type(repeat) is not int or repeat < 0:
            raise DataError(f"repeat_idx must be a whole number, got {repeat!r:.80}")
        annotation = self._annotation(task, repeat)
        scene = annotation.get("scene")
        place = scene.get("floor_plan") if isinstance(scene, dict) else ""
        kept = {key: annotation.get(key) for key in ("scene", "pddl_params", "plan")}
        kept |= {"task": task, "repeat_idx": repeat}
        truth = PublishedTruth(
            benchmark="eb_alfred",
            subset=subset,
            scene=place if isinstance(place, str) else "",
            task=str(annotation.get("task_type", "")),
            content=json.dumps(kept, sort_keys=True),
            labels={"subset": subset},
        )
        return Sample(f"eb_alfred/{subset}/{index}", instruction, kind=subset, ground_truth=truth)

    def _annotation(self, task: str, repeat: int) -> Mapping[str, Any]:
        """Return the annotation of a task; its path must be inside the folder."""
        for folder in _FOLDERS:
            file = file_inside(self.folder / folder, f"{task}/pp/ann_{repeat}.json")
            if file.is_file():
                return _json(file)
        raise DataError(f"there is no annotation ann_{repeat}.json of the task {task!r:.80}")


def _json(file: Path) -> Mapping[str, Any]:
    """Return the object of a JSON file."""
    try:
        value = read_json_file(read_bytes(file))
    except DataError as error:
        raise DataError(f"{file} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{file} must hold an object, got {type(value).__name__}.")
    return value
