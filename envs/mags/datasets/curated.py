"""Loads samples that the steps of `visenv data` curated.

The folder contains ``stage1.jsonl``, ``stage2.jsonl`` and ``evaluation.jsonl``, as written by the
steps ``mags-train`` and ``stratify``: rows with ``id``, ``question``, ``images`` (paths),
``response``, ``kind``, ``dataset`` and ``difficulty``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from visenv.data.json_rows import json_object, read_rows
from visenv.data.rows import first_files, id_of, text_of
from visenv.errors import DataError, UnknownNameError
from visenv.files import file_inside
from visenv.types import QuestionTruth, Sample

from .photo_questions import PhotoQuestions

PARTS = {"1": "stage1.jsonl", "2": "stage2.jsonl", "evaluation": "evaluation.jsonl"}


class MagsRows(PhotoQuestions):
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

    def __init__(self, folder: str | Path, stage: str = "1") -> None:
        super().__init__(folder)
        if stage not in PARTS:
            raise UnknownNameError("stage of curated samples", stage, PARTS)
        (file,) = first_files(self.folder, [PARTS[stage]])
        for place, content in read_rows(file):
            with self._listing(place):
                row = json_object(content)
                self._keep(place, _sample(row), self._image(row))
        self._require_rows(self.folder)

    def _image(self, row: dict[str, Any]) -> Path:
        images = row.get("images")
        if not isinstance(images, list) or not images or not isinstance(images[0], str):
            raise DataError(f"no images: {images!r:.80}")
        if len(images) > 1:
            raise DataError(f"{len(images)} images; MagsZoom shows one")
        path = file_inside(self.folder, images[0])
        if not path.is_file():
            raise DataError(f"there is no image {path}")
        return path


def _sample(row: dict[str, Any]) -> Sample:
    labels = {
        "set": f"{text_of(row, 'dataset')} {text_of(row, 'difficulty')}",
        "dataset": text_of(row, "dataset"),
        "difficulty": text_of(row, "difficulty"),
    }
    return Sample(
        id_of(row),
        text_of(row, "question"),
        (),
        (text_of(row, "response"),),
        text_of(row, "kind"),
        QuestionTruth(labels=labels),
    )
