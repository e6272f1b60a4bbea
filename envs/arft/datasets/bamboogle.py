"""Loads Bamboogle (Press et al., 2023): 125 two-hop questions that a search engine gets wrong.

Supported layouts: ``Bamboogle Prerelease - Sheet1.csv``, as released, with the columns
``Question`` and ``Answer``; and FlashRAG's ``bamboogle/test.jsonl``. Neither contains sub-queries,
articles or other forms of an answer.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from typing_extensions import override

from visenv.data.rows import RowLocation
from visenv.decoding.files import read_regular
from visenv.errors import DataError

from .multi_hop import MultiHopSource, Row


class Bamboogle(MultiHopSource):
    """Loads Bamboogle; its answers are published, although its only split is called ``"test"``."""

    name = "bamboogle"
    splits = ("test",)
    hidden = ()
    patterns = ("Bamboogle*.csv", "bamboogle/{split}.jsonl", "{split}.jsonl")

    @override
    def answers(self, row: Row) -> Iterable[Any]:
        return [row.get("answer")]

    @override
    def gold(self, row: Row) -> tuple[str, list[str], list[str]]:
        return "", [], []

    @override
    def contents(self) -> Iterator[tuple[RowLocation, Any]]:
        if self.file.suffix != ".csv":
            yield from super().contents()
            return
        content = read_regular(self.file).decode("utf-8-sig", "replace").replace("\0", "")
        rows = csv.DictReader(io.StringIO(content, newline=""))
        if not {"Question", "Answer"} <= set(rows.fieldnames or ()):
            raise DataError(
                f"{self.file} must have the columns Question and Answer, got {rows.fieldnames}"
            )
        for number, row in enumerate(rows, start=1):
            record = {"id": number, "question": row["Question"], "answer": row["Answer"]}
            yield RowLocation(str(self.file), number + 1), record
