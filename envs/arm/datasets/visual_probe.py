"""Loads VisualProbe (Lai et al., "Mini-o3", arXiv 2509.07969): small details in large images.

Each level has a folder, as on the hub (``Mini-o3/VisualProbe_Easy``, ``_Medium``, ``_Hard`` and
``_train``): ``val.json`` or ``train.json``, a list of ``{"images": ["VisualProbe_Hard/1.jpg"],
"problem": "<image>…", "solution": …, "doc_id": …, "data_source": …}``, and the images.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from visenv.data.rows import RowLocation, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError
from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import comparison_tokens, same_answer
from visenv.types import QuestionTruth, Sample

_IMAGE_TOKEN = re.compile(r"<image>\n?")


class VisualProbe(TableSource):
    """Loads VisualProbe from a local folder, as plain questions with free-form answers.

    `Sample.kind` is ``data_source``. The benchmark uses a language model to decide whether an
    answer is right: use ``judge="openai:<model>"``. `score` alone accepts no other wording.

    Args:
        folder: The folder with the files.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = QuestionTruth
    patterns = ("val.json", "train.json", "*.jsonl", "data/*.parquet")
    image_columns = ("images",)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return 1 if the answer equals the reference, otherwise 0.

        They are compared by `visenv.text.normalize.same_answer`.
        """
        return float(not is_too_long(answer) and same_answer(answer, sample.answers[0]))

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        asked = _IMAGE_TOKEN.sub("", text_of(row, "problem")).strip()
        answer = row.get("solution")
        if isinstance(answer, bool) or not isinstance(answer, str | int | float):
            raise DataError(f"no solution: {answer!r:.80}")
        if not asked or not comparison_tokens(str(answer)):
            raise DataError(f"no question or no solution: {asked!r:.80}, {answer!r:.80}")
        number = row.get("doc_id", place.row - 1)
        kind = str(row.get("data_source") or "")
        identity = f"visual_probe-{Path(place.file).parent.name}-{number}"
        return Sample(identity, asked, (), (str(answer).strip(),), kind, QuestionTruth())
