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

from visenv.data.delimited import DelimitedFile, ImageRecords, Record
from visenv.data.parquet import ParquetShards
from visenv.data.rows import (
    RowLocation,
    RowSource,
    as_choices,
    contents,
    existing_folder,
    image_from_cell,
    text_of,
)
from visenv.errors import DataError, UnknownNameError
from visenv.rewards.choice import choice_score
from visenv.types import Image, QuestionTruth, Sample
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


class HRBench(RowSource):
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

    def __init__(self, folder: str | Path, size: str = "4k") -> None:
        super().__init__()
        if size not in SIZES:
            raise UnknownNameError("size of HR-Bench", size, SIZES)
        self.folder = existing_folder(folder)
        self.size = size
        self._tsv: DelimitedFile | None = None
        self._shards: ParquetShards | None = None
        self._load()
        self._require_rows(self.folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return 1 if the answer selects the right option, otherwise 0.

        With ``compat="r1_vlm"`` only the bare letter counts, because that code compares the two
        strings. (It compares the whole turn, including tags, so that its score is always 0.)
        """
        (label,) = sample.answers
        if compat:
            return float(answer == label)
        return choice_score(answer, label, sample.truth_as(HRBenchTruth).options)

    def _load(self) -> None:
        files = [*self.folder.iterdir(), *self.folder.glob("data/*")]
        ours = sorted(file for file in files if _stem(file).startswith(f"hrbench{self.size}"))
        tables = [file for file in ours if file.suffix == ".tsv"]
        shards = [file for file in ours if file.suffix == ".parquet"]
        if tables:
            self._load_tsv(DelimitedFile(tables[0]))
        elif shards:
            self._load_parquet(ParquetShards(shards, large=["image"]))
        else:
            raise DataError(
                f"Expected hr_bench_{self.size}.parquet or HRBench{self.size.upper()}.tsv in "
                f"{self.folder}; it holds {contents(self.folder)}."
            )

    @override
    def _open_images(self, place: RowLocation, images: Record | int) -> tuple[Image, ...]:
        if isinstance(images, Record):
            assert self._tsv is not None
            encoded = self._tsv.row(self._tsv.read(images))["image"]
        else:
            assert self._shards is not None
            encoded = self._shards.cell(images, "image")
        return (image_from_cell(encoded, f"the image of {place}"),)

    def _load_tsv(self, tsv: DelimitedFile) -> None:
        _require_columns(tsv.path, tsv.columns)
        self._tsv = tsv
        rows: list[tuple[RowLocation, dict[str, str], str]] = []
        images = ImageRecords()
        for record, content in tsv.records():
            place = RowLocation(str(tsv.path), record.line)
            with self._listing(place):
                row = tsv.row(content)
                text_of(row, "image")
                holder = images.note(record, row)
                rows.append((place, {**row, "image": ""}, holder))
        for place, row, holder in rows:
            with self._listing(place):
                self._keep(place, _sample(row, self.size), images.holder(holder))

    def _load_parquet(self, shards: ParquetShards) -> None:
        self._shards = shards
        for row in shards.rows():
            with self._listing(row.place):
                self._keep(row.place, _sample(row.read(), self.size), row.number)


def _require_columns(file: Path, columns: Sequence[str]) -> None:
    missing = [column for column in _COLUMNS if column not in columns]
    if missing:
        raise DataError(f"{file} has no column {', '.join(missing)}; it has {', '.join(columns)}.")


def _stem(file: Path) -> str:
    return re.sub(r"[^a-z0-9]", "", file.name.lower())


def _sample(row: Mapping[str, Any], size: str) -> Sample:
    label = text_of(row, "answer").strip()
    options = [str(row[letter]) for letter in _LETTERS if row.get(letter) not in (None, "")]
    if label not in _LETTERS[: len(options)]:
        raise DataError(f"the answer {label!r} is not among the {len(options)} options")
    truth = HRBenchTruth(
        options=tuple(options), index=row.get("index"), cycle_category=row.get("cycle_category")
    )
    question = as_choices(text_of(row, "question"), options)
    identity = f"hrbench-{size}-{row.get('index')}"
    return Sample(identity, question, (), (label,), text_of(row, "category"), truth)
