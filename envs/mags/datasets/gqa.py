"""Loads GQA (Hudson and Manning, CVPR 2019): compositional questions about scenes.

Layout: ``{split}_balanced_questions.json``, also in ``questions/``, an object of rows by their id
with ``imageId``, ``question`` and ``answer``; images are ``images/<imageId>.jpg``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from visenv.data.json_rows import json_file, json_object
from visenv.data.rows import RowLocation, first_files, id_of, text_of
from visenv.errors import UnknownNameError
from visenv.types import QuestionTruth, Sample

from .photo_questions import PhotoQuestions

SPLITS = ("train", "val", "testdev")


class GQA(PhotoQuestions):
    """Loads GQA; `Sample.kind` is the structural type, for example ``"query"`` or ``"verify"``.

    Args:
        folder: The folder with the files.
        split: ``"train"``, ``"val"`` or ``"testdev"``.

    Raises:
        UnknownNameError: If there is no such split.
        DataError: If there is no such file, or no row can be used.
    """

    def __init__(self, folder: str | Path, split: str = "testdev") -> None:
        super().__init__(folder)
        if split not in SPLITS:
            raise UnknownNameError("split of GQA", split, SPLITS)
        name = f"{split}_balanced_questions.json"
        (file,) = first_files(self.folder, [name, f"questions/{name}"])
        self._load(_rows(file), _sample)


def _rows(file: Path) -> Iterator[tuple[RowLocation, Any]]:
    content = json_object(json_file(file))
    for number, (identity, row) in enumerate(content.items(), start=1):
        yield (
            RowLocation(str(file), number),
            {**row, "id": identity} if isinstance(row, dict) else row,
        )


def _sample(row: dict[str, Any]) -> tuple[Sample, str]:
    types = row.get("types")
    kind = types.get("structural") if isinstance(types, dict) else None
    sample = Sample(
        f"gqa-{id_of(row)}",
        text_of(row, "question"),
        (),
        (text_of(row, "answer"),),
        kind if isinstance(kind, str) else "query",
        QuestionTruth(),
    )
    return sample, f"{id_of(row, 'imageId')}.jpg"
