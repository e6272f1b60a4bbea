"""Loads TallyQA (Acharya et al., AAAI 2019): counting questions with answers from 0 to 15.

Layout: ``train.json`` and ``test.json``, lists of ``image`` (a path such as
``VG_100K_2/2410408.jpg``), ``question``, ``question_id``, ``answer``, ``issimple`` and
``data_source``; the images' folders are in the folder or in ``images/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from visenv.data.json_rows import read_rows
from visenv.data.rows import first_files, id_of, text_of
from visenv.errors import DataError, UnknownNameError
from visenv.types import QuestionTruth, Sample

from ..rewards import COUNTING
from .photo_questions import PhotoQuestions, file_name

SPLITS = ("train", "test")


class TallyQA(PhotoQuestions):
    """Loads TallyQA; `Sample.kind` is ``"counting"``, and a label says simple or complex.

    Args:
        folder: The folder with the files.
        split: ``"train"`` or ``"test"``.

    Raises:
        UnknownNameError: If there is no such split.
        DataError: If there is no such file, or no row can be used.
    """

    def __init__(self, folder: str | Path, split: str = "test") -> None:
        super().__init__(folder)
        if split not in SPLITS:
            raise UnknownNameError("split of TallyQA", split, SPLITS)
        (file,) = first_files(self.folder, [f"{split}.json"])
        self._split = split
        self._load(read_rows(file), self._sample)

    def _sample(self, row: dict[str, Any]) -> tuple[Sample, str]:
        count = row.get("answer")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise DataError(f"the answer must be a count, got {count!r:.80}")
        simple = row.get("issimple")
        known = {True: "simple", False: "complex"}
        labels = {"complexity": known[simple]} if isinstance(simple, bool) else {}
        sample = Sample(
            f"tallyqa-{self._split}-{id_of(row, 'question_id', 'id')}",
            text_of(row, "question"),
            (),
            (str(count),),
            COUNTING,
            QuestionTruth(labels=labels),
        )
        return sample, file_name(row, "image")
