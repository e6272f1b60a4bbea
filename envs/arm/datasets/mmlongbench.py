"""Loads MMLongBench-Doc (Ma et al., arXiv 2407.01523): questions about long documents.

Supported layouts: the repository's, and the hub's (``yubo2333/MMLongBench-Doc``; needs the extra
``data``)::

    samples.json (or data/samples.json)     data/train-00000-of-00001.parquet
    documents/<name>.pdf  (or data/documents/)

Columns: ``doc_id``, ``doc_type``, ``question``, ``answer``, ``evidence_pages`` and
``evidence_sources`` (lists written as text), ``answer_format`` (``Int``, ``Float``, ``Str``,
``List`` or ``None``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from visenv.data.json_rows import written_list
from visenv.data.rows import RowLocation, existing_folder, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError
from visenv.types import Episode, EventLog, Sample

from ..answer_judge import short_answer
from ..ground_truth import DocumentTruth
from .document_rows import document_of, library_of
from .mmlongbench_score import FORMATS, NOT_ANSWERABLE, mmlongbench_score


class MMLongBench(TableSource):
    """Loads MMLongBench-Doc from a local folder, as plain questions about documents.

    `Sample.kind` is ``"single-page"``, ``"cross-page"`` or ``"unanswerable"``. Results are
    reported by it and by the document's type. A row without its document is skipped. Some published
    rows name the page 0, or pages beyond the end of their document; these pages count for the kind,
    and are no evidence pages.

    Args:
        folder: The folder with the files.
        documents: The folder of the documents, if it is elsewhere.
        follow_links: Whether to follow links in the folder of the documents that lead out of it.

    Attributes:
        library: The documents.
        answer_note: A note about the answers of this data set, for prompts and a judge.

    Raises:
        DataError: If the folder has no such file or no documents, or no row can be used.
    """

    ground_truth = DocumentTruth
    answer_note = f"If the document does not tell, answer: {NOT_ANSWERABLE}"
    patterns = ("samples.json", "data/samples.json", "data/train-*.parquet", "*.jsonl")
    image_columns = ()

    def __init__(
        self,
        folder: str | Path,
        documents: str | Path | None = None,
        follow_links: bool | str = False,
    ) -> None:
        self.library = library_of(existing_folder(folder), documents, follow_links)
        if self.library is None:
            raise DataError(
                f"There is no folder of documents in {folder}: expected documents/ or "
                "data/documents/. Name another one with ?documents=<folder>."
            )
        super().__init__(folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return the benchmark's score for the answer's format, 0 to 1."""
        form = sample.truth_as(DocumentTruth).answer_format
        return mmlongbench_score(answer, sample.answers[0], form)

    def totals(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Return ``F1``: precision is over answered questions, recall over answerable ones.

        If there was a judge, its extracted answer is used. An episode without an answer, also an
        aborted one, counts as answered wrongly.
        """
        hits, answerable, answered = 0.0, 0, 0
        for episode in episodes:
            sample = self.sample_of(episode)
            if sample is None:
                continue
            answer = short_answer(EventLog(episode.events))
            can_be = sample.answers[0] != NOT_ANSWERABLE
            if can_be and answer is not None:
                accuracy = episode.metrics.get("accuracy")  # some saved episodes lack it
                hits += self.score(answer, sample) if accuracy is None else accuracy
            answerable += can_be
            answered += answer is None or answer.strip().lower() != NOT_ANSWERABLE.lower()
        if not answerable:
            return {}
        recall, precision = hits / answerable, hits / answered if answered else 0.0
        return {"F1": 2 * recall * precision / (recall + precision) if hits else 0.0}

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample:
        form, answer = str(row.get("answer_format")), _answer(row)
        if form not in FORMATS:
            raise DataError(f"answer_format must be one of {', '.join(FORMATS)}, got {form!r}")
        pages = _pages(row)
        document = document_of(row, self.library)
        assert self.library is not None
        length = len(self.library.document(document))
        kind = _kind(pages, answer)
        truth = DocumentTruth(
            document=document,
            evidence_pages=tuple([page for page in pages if 1 <= page <= length]),
            evidence_sources=tuple(written_list(row.get("evidence_sources") or [])),
            answer_format=form,
            labels={"pages": kind, "document type": str(row.get("doc_type") or "")},
        )
        question = text_of(row, "question")
        return Sample(f"mmlongbench-{document}-{place.row}", question, (), (answer,), kind, truth)


def _answer(row: Mapping[str, Any]) -> str:
    answer = row.get("answer")
    if isinstance(answer, bool) or not isinstance(answer, str | int | float) or answer == "":
        raise DataError(f"no answer: {answer!r:.200}")
    return str(answer)


def _pages(row: Mapping[str, Any]) -> list[int]:
    pages = written_list(row.get("evidence_pages") or [])
    if not all(type(page) is int and page >= 0 for page in pages):  # 0 occurs in published rows
        raise DataError(f"evidence_pages must be page numbers from 1, got {pages!r:.200}")
    return pages


def _kind(pages: Sequence[int], answer: str) -> str:
    if answer == NOT_ANSWERABLE:
        return "unanswerable"
    return "single-page" if len(pages) == 1 else "cross-page"
