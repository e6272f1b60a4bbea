"""Loads VSR (Liu et al., TACL 2023): true or false captions about the positions of two objects.

Layout: ``data/splits/{random,zeroshot}/{train,dev,test}.jsonl`` or ``splits/…``, with ``image``,
``caption``, ``label`` (0 or 1) and ``relation`` in a row; images in ``images/``, ``data/images/``
or one of their folders ``train2017`` and ``val2017``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.types import QuestionTruth, Sample

VERSIONS = ("random", "zeroshot")
SPLITS = ("train", "dev", "test")
_FOLDERS = (
    *("", "images", "data/images"),
    *("images/train2017", "images/val2017", "train2017", "val2017"),
)


class VSR(TableSource):
    """Loads VSR, asked as "Is it true that …?" and answered with "yes" or "no".

    `Sample.kind` is ``"relation"``; the relation is a label of the ground truth.

    Args:
        folder: The folder with the files.
        version: ``"random"`` or ``"zeroshot"``.
        split: ``"train"``, ``"dev"`` or ``"test"``.

    Raises:
        UnknownNameError: If there is no such version or split.
        DataError: If there is no such file, or no row can be used.
    """

    ground_truth = QuestionTruth
    image_folders = _FOLDERS

    def __init__(self, folder: str | Path, version: str = "random", split: str = "test") -> None:
        for what, name, known in (("version", version, VERSIONS), ("split", split, SPLITS)):
            if name not in known:
                raise UnknownNameError(f"{what} of VSR", name, known)
        self._prefix = f"vsr-{version}-{split}"
        self.patterns = [f"{root}/{version}/{split}.jsonl" for root in ("data/splits", "splits")]
        super().__init__(folder)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        label = row.get("label")
        if label not in (0, 1):
            raise DataError(f"the label must be 0 or 1, got {label!r:.80}")
        labels = {"relation": str(row.get("relation", ""))}
        return Sample(
            f"{self._prefix}-{place.row}",
            as_question(text_of(row, "caption")),
            answers=("yes" if label else "no",),
            kind="relation",
            ground_truth=QuestionTruth(options=("yes", "no"), labels=labels),
        )


def as_question(caption: str) -> str:
    """Return a caption as a question, "Is it true that …?"."""
    statement = caption.strip().rstrip(".").rstrip()
    return f"Is it true that {statement[:1].lower()}{statement[1:]}?"
