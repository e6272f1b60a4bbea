"""Loads questions about your own documents, from a folder of PDFs with a file of questions.

Folder::

    questions.jsonl
    annual-report.pdf  minutes.pdf  …        or all of them in a folder documents/

Each line of ``questions.jsonl`` is a JSON object with

- ``id``: a text or an integer, unique in the file;
- ``document``: the name of a document, with or without ``.pdf``;
- ``question``: the question about the document;
- either ``candidates``, a list of responses, and ``verdict``: true or false for one response, the
  number of the best (from 1) for several;
- or ``answer``, a right response, and ``wrong_answers``, a list of wrong ones. The row then becomes
  a single response to judge, a pair, and, with at least three wrong ones, a choice of four;
- and, if they are known, ``evidence_pages`` (numbers from 1), ``gold_query`` (words that find these
  pages) and ``kind`` (a label for reports).

::

    {"id": 1, "document": "minutes", "question": "Who took the minutes?", "evidence_pages": [2],
     "answer": "Ada Byron took them.", "wrong_answers": ["Grace Hopper took them."]}
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from visenv.data.json_rows import json_lines, json_object
from visenv.data.rows import RowLocation, RowSource, existing_folder, first_files, text_of
from visenv.documents import Library
from visenv.errors import DataError, UnknownNameError
from visenv.types import Image, Sample

from ..ground_truth import JudgingTruth, judging_sample
from .document_rows import library_of, opened, some_library

QUESTIONS = "questions.jsonl"

FIELDS = (
    *("id", "document", "question", "candidates", "verdict", "answer", "wrong_answers"),
    *("evidence_pages", "gold_query", "kind"),
)
"""The fields of a row; any other field is an error."""

WAYS = {"single": 1, "pair": 2, "4-way": 4}
"""The judgments that are made of right and wrong answers, with their numbers of responses."""


class PdfQuestions(RowSource):
    """Loads judging samples about the documents of a folder; the module describes the folder.

    A row that cannot be used (invalid JSON, a missing field, a document that is missing or cannot
    be opened, an evidence page beyond its end) is skipped and listed in `problems`. Samples made of
    right and wrong answers have the row's id and ``/single``, ``/pair`` or ``/4-way``.

    Args:
        folder: The folder with ``questions.jsonl``.
        documents: The folder of the documents; by default ``documents`` in `folder` if there is
            one, otherwise `folder` itself.
        seed: The seed of the order of right and wrong answers.
        follow_links: Whether to follow links in the folder of the documents that lead out of it.

    Attributes:
        library: The documents.

    Raises:
        DataError: If there is no such folder or file, or no row can be used.
    """

    ground_truth = JudgingTruth

    def __init__(
        self,
        folder: str | Path,
        documents: str | Path | None = None,
        seed: int | str = 0,
        follow_links: bool | str = False,
    ) -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        self.seed = str(seed)
        found = library_of(self.folder, documents, follow_links)
        self.library: Library = found or some_library(self.folder, follow_links)
        for place, line in json_lines(first_files(self.folder, [QUESTIONS])[0]):
            with self.listing_problems(place):
                for sample in self._samples(json_object(line)):
                    self.add_row(place, sample)
        self.require_rows(self.folder)

    @override
    def open_images(self, place: RowLocation, images: None) -> tuple[Image, ...]:
        return ()  # the pages are in the library

    def _samples(self, row: Mapping[str, Any]) -> list[Sample]:
        """Return the samples of a row, or raise if any of them is invalid."""
        _check_names(row)
        question, known = text_of(row, "question"), self._without_candidates(row)
        return [
            judging_sample(
                id=made.id,
                instruction=question,
                truth=replace(known, candidates=tuple(made.candidates)),
                verdict=made.verdict,
                kind=made.kind,
            )
            for made in _judgments(row, self.seed)
        ]

    def _without_candidates(self, row: Mapping[str, Any]) -> JudgingTruth:
        """Return the ground truth of a row before candidates are added."""
        document = opened(self.library, text_of(row, "document"))
        pages = _pages(row["evidence_pages"], len(document)) if "evidence_pages" in row else []
        return JudgingTruth(
            candidates=(),
            document=document.name,
            evidence_pages=tuple(pages),
            gold_query=text_of(row, "gold_query") if "gold_query" in row else "",
        )


def _check_names(row: Mapping[str, Any]) -> None:
    """Raise an error for an unknown field, because a misspelled one would be ignored silently."""
    for name in row:
        if name not in FIELDS:
            raise DataError(str(UnknownNameError("field of a question", name, FIELDS)))


class _Judgment(NamedTuple):
    id: str
    kind: str
    candidates: Sequence[str]
    verdict: Any


def _judgments(row: Mapping[str, Any], seed: str) -> Iterator[_Judgment]:
    """Return the judgments of a row: its candidates, or some that are made of its answers."""
    name, kind = _id(row), text_of(row, "kind") if "kind" in row else ""
    if "candidates" in row:
        yield _Judgment(name, kind, _texts(row, "candidates"), row.get("verdict"))
        return
    answer, wrong = text_of(row, "answer"), _texts(row, "wrong_answers")
    if len({answer, *wrong}) <= len(wrong):
        raise DataError(
            f"answer and wrong_answers must all differ, got {answer!r:.80} and {wrong!r:.200}"
        )
    for way, count in WAYS.items():
        if count <= 1 + len(wrong):
            yield _mixed(f"{name}/{way}", kind or way, answer, wrong, count, seed)


def _mixed(
    name: str, kind: str, answer: str, wrong: Sequence[str], count: int, seed: str
) -> _Judgment:
    """Return `count` answers in an order that depends only on name and seed.

    A single answer is right with the probability 1/2.
    """
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8]))
    others = [wrong[place] for place in rng.permutation(len(wrong))]
    place = int(rng.integers(max(count, 2)))
    candidates = [*others[:place], answer, *others[place:]][:count]
    return _Judgment(name, kind, candidates, place == 0 if count == 1 else place + 1)


def _id(row: Mapping[str, Any]) -> str:
    name = row.get("id")
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    return text_of(row, "id")


def _texts(row: Mapping[str, Any], key: str) -> list[str]:
    texts = row.get(key)
    if not isinstance(texts, list) or not texts:
        raise DataError(f"{key} must be a list of texts, got {texts!r:.200}")
    if not all(isinstance(each, str) and each.strip() for each in texts):
        raise DataError(f"{key} must contain only texts, got {texts!r:.200}")
    return texts


def _pages(given: Any, most: int) -> list[int]:
    if not isinstance(given, list) or not all(
        type(page) is int and 1 <= page <= most for page in given
    ):
        raise DataError(
            f"evidence_pages must be a list of page numbers, 1 to {most}, got {given!r:.200}"
        )
    return given
