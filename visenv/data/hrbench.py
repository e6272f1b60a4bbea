"""Loads HR-Bench 4K and 8K (Wang et al., "Divide, Conquer and Combine", 2024), as published.

There is one file for each size, parquet (hub ``DreamMr/HR-Bench``; needs the extra ``data``) or TSV
(in the format of VLMEvalKit), in the folder or in its ``data/``: ``hr_bench_4k.parquet``,
``hrbench_4k-00000-of-00002.parquet``, ``HRBench4K.tsv``. The columns are ``index``, ``question``,
``image`` (base64), ``A`` to ``D``, ``answer`` (a letter), ``category`` (``single`` or ``cross``)
and ``cycle_category``. 200 questions in 4 cyclic orders of their options are 800 rows, and the
score is the mean over all rows.

In a TSV file, an ``image`` of at most 64 characters is the ``index`` of the row that contains the
image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.data.rows import RowLocation, as_choices, contents, text_of
from visenv.data.table_source import SharedImageSource
from visenv.errors import DataError, UnknownNameError
from visenv.rewards.choice import choice_score
from visenv.types import QuestionTruth, Sample
from visenv.types.ground_truth import STRICT

SIZES = ("4k", "8k")
_LETTERS = "ABCD"
_COLUMNS = ("index", "question", "image", *_LETTERS, "answer", "category")


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class HRBenchTruth(QuestionTruth):
    """Holds the ground truth of a row of HR-Bench.

    Attributes:
        index: The number of the row.
        cycle_category: The order of the options, as published.
    """

    index: int | str | None = None
    cycle_category: int | str | None = None


class HRBench(SharedImageSource):
    """Loads HR-Bench of one size from a local folder.

    Opening a TSV file reads the whole file once and keeps the small columns; the images of a row
    are read when the row is read. `Sample.answers` is the right letter; `Sample.kind` is
    ``"single"`` or ``"cross"``; `Sample.ground_truth` is an `HRBenchTruth`.

    The official judge is a language model that answers yes or no; this class parses the chosen
    letter (`visenv.rewards.choice`).

    Args:
        folder: The folder with the files.
        size: ``"4k"`` or ``"8k"``.

    Raises:
        UnknownNameError: If there is no such size.
        DataError: If the folder has no file of that size, or no row can be used.
    """

    ground_truth = HRBenchTruth
    required_columns = _COLUMNS

    def __init__(self, folder: str | Path, size: str = "4k") -> None:
        if size not in SIZES:
            raise UnknownNameError("size of HR-Bench", size, SIZES)
        self.size = size
        super().__init__(folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return 1 if the answer selects the right option, otherwise 0.

        With ``compat="r1_vlm"`` only the bare letter counts, because that code compares the two
        strings. (It compares the whole turn, including tags, so that its score is always 0.)
        """
        (label,) = sample.answers
        if compat:
            return float(answer == label)
        return choice_score(answer, label, sample.truth_as(HRBenchTruth).options)

    @override
    def table_files(self) -> Sequence[Path]:
        """Return the TSV file of the size, or else its shards."""
        files = [*self.folder.iterdir(), *self.folder.glob("data/*")]
        ours = sorted(file for file in files if _stem(file).startswith(f"hrbench{self.size}"))
        tables = [file for file in ours if file.suffix == ".tsv"]
        shards = [file for file in ours if file.suffix == ".parquet"]
        if not tables and not shards:
            raise DataError(
                f"Expected hr_bench_{self.size}.parquet or HRBench{self.size.upper()}.tsv in "
                f"{self.folder}; it holds {contents(self.folder)}."
            )
        return tables[:1] or shards

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        label = text_of(row, "answer").strip()
        options = [str(row[letter]) for letter in _LETTERS if row.get(letter) not in (None, "")]
        if label not in _LETTERS[: len(options)]:
            raise DataError(f"the answer {label!r} is not among the {len(options)} options")
        index, cycle = row.get("index"), row.get("cycle_category")
        truth = HRBenchTruth(options=tuple(options), index=index, cycle_category=cycle)
        question = as_choices(text_of(row, "question"), options)
        identity = f"hrbench-{self.size}-{index}"
        return Sample(identity, question, (), (label,), text_of(row, "category"), truth)


def _stem(file: Path) -> str:
    return re.sub(r"[^a-z0-9]", "", file.name.lower())
