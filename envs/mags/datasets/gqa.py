"""Loads GQA (Hudson and Manning, CVPR 2019): compositional questions about scenes.

Layout: ``{split}_balanced_questions.json``, also in ``questions/``, an object of rows by their id
with ``imageId``, ``question`` and ``answer``; images are ``images/<imageId>.jpg``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.data.table_source import TableSource
from visenv.errors import UnknownNameError
from visenv.types import QuestionTruth, Sample

SPLITS = ("train", "val", "testdev")


class GQA(TableSource):
    """Loads GQA; `Sample.kind` is the structural type, for example ``"query"`` or ``"verify"``.

    Args:
        folder: The folder with the files.
        split: ``"train"``, ``"val"`` or ``"testdev"``.

    Raises:
        UnknownNameError: If there is no such split.
        DataError: If there is no such file, or no row can be used.
    """

    ground_truth = QuestionTruth
    image_columns = ("imageId",)

    def __init__(self, folder: str | Path, split: str = "testdev") -> None:
        if split not in SPLITS:
            raise UnknownNameError("split of GQA", split, SPLITS)
        name = f"{split}_balanced_questions.json"
        self.patterns = (name, f"questions/{name}")
        super().__init__(folder)

    @override
    def image_path(self, name: str) -> str | Path:
        return super().image_path(f"{name}.jpg")

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        types = row.get("types")
        kind = types.get("structural") if isinstance(types, dict) else None
        return Sample(
            f"gqa-{id_of(row)}",
            text_of(row, "question"),
            answers=(text_of(row, "answer"),),
            kind=kind if isinstance(kind, str) else "query",
            ground_truth=QuestionTruth(),
        )
