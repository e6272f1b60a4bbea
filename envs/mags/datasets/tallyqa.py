"""Loads TallyQA (Acharya et al., AAAI 2019): counting questions with answers from 0 to 15.

Layout: ``train.json`` and ``test.json``, lists of ``image`` (a path such as
``VG_100K_2/2410408.jpg``), ``question``, ``question_id``, ``answer``, ``issimple`` and
``data_source``; the images' folders are in the folder or in ``images/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError, UnknownNameError
from visenv.types import QuestionTruth, Sample

from ..rewards import COUNTING

SPLITS = ("train", "test")


class TallyQA(TableSource):
    """Loads TallyQA; `Sample.kind` is ``"counting"``, and a label says simple or complex.

    Args:
        folder: The folder with the files.
        split: ``"train"`` or ``"test"``.

    Raises:
        UnknownNameError: If there is no such split.
        DataError: If there is no such file, or no row can be used.
    """

    ground_truth = QuestionTruth

    def __init__(self, folder: str | Path, split: str = "test") -> None:
        if split not in SPLITS:
            raise UnknownNameError("split of TallyQA", split, SPLITS)
        self.split = split
        self.patterns = (f"{split}.json",)
        super().__init__(folder)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        count = row.get("answer")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise DataError(f"the answer must be a count, got {count!r:.80}")
        simple = row.get("issimple")
        known = {True: "simple", False: "complex"}
        labels = {"complexity": known[simple]} if isinstance(simple, bool) else {}
        return Sample(
            f"tallyqa-{self.split}-{id_of(row, 'question_id', 'id')}",
            text_of(row, "question"),
            answers=(str(count),),
            kind=COUNTING,
            ground_truth=QuestionTruth(labels=labels),
        )
