"""Loads samples that the steps of `visenv data` curated.

The folder contains ``stage1.jsonl``, ``stage2.jsonl`` and ``evaluation.jsonl``, as written by the
steps ``mags-train`` and ``stratify``: rows with ``id``, ``question``, ``images`` (paths),
``response``, ``kind``, ``dataset`` and ``difficulty``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.files import file_inside
from visenv.types import QuestionTruth, Sample

PARTS = {"1": "stage1.jsonl", "2": "stage2.jsonl", "evaluation": "evaluation.jsonl"}


class MagsRows(TableSource):
    """Loads the curated samples of a stage, or those of the evaluation.

    Data set and difficulty are labels of the ground truth, so that results are grouped by them as
    in table 1 of the paper.

    Args:
        folder: The folder of the files.
        stage: ``"1"``, ``"2"`` or ``"evaluation"``.

    Raises:
        UnknownNameError: If there is no such part.
        DataError: If there is no such file, or no row can be used.
    """

    ground_truth = QuestionTruth
    image_columns = ("images",)

    def __init__(self, folder: str | Path, stage: str = "1") -> None:
        if stage not in PARTS:
            raise UnknownNameError("stage of curated samples", stage, PARTS)
        self.patterns = (PARTS[stage],)
        super().__init__(folder)

    @override
    def image_path(self, name: str) -> Path:
        path = file_inside(self.folder, name)
        if not path.is_file():
            raise DataError(f"there is no image {path}")
        return path

    @override
    def check_image_count(self, count: int) -> None:
        super().check_image_count(count)
        if count > 1:
            raise DataError(f"MagsZoom shows one image, got {count}")

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        dataset, difficulty = text_of(row, "dataset"), text_of(row, "difficulty")
        labels = {
            "set": f"{dataset} {difficulty}",
            "dataset": dataset,
            "difficulty": difficulty,
        }
        return Sample(
            id_of(row),
            text_of(row, "question"),
            answers=(text_of(row, "response"),),
            kind=text_of(row, "kind"),
            ground_truth=QuestionTruth(labels=labels),
        )
