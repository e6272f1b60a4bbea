"""Loads and scores MMLongBench-Doc (Ma et al., arXiv 2407.01523): questions on long documents.

=========  =====================================================================================
format     score
=========  =====================================================================================
``Int``    1 if equal after the answer is truncated to a whole number
``Float``  1 if within 1 % of the reference, its hundredth or its hundredfold (percentages)
``Str``    1 if equal, for references that look like a link, a file, a page, a number, a time or
``None``   an address; otherwise the edit similarity, 0 if it is at most 0.5
``List``   0 if the lengths differ; otherwise both are sorted, and the score is 1 if equal, for
           first items that are numbers or look as above, else the lowest similarity of two items
=========  =====================================================================================

The score follows the benchmark's own script, whose similarities are soft (its accuracy sums them),
except for cases in which the script fails: an answer that looks like a list but is none is one
item, the policy's text is never evaluated as code, and an unreadable reference number scores 0.

Supported layouts: the repository's, and the hub's (``yubo2333/MMLongBench-Doc``; needs the extra
``data``)::

    samples.json (or data/samples.json)     data/train-00000-of-00001.parquet
    documents/<name>.pdf  (or data/documents/)

Columns: ``doc_id``, ``doc_type``, ``question``, ``answer``, ``evidence_pages`` and
``evidence_sources`` (lists written as text), ``answer_format`` (``Int``, ``Float``, ``Str``,
``List`` or ``None``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from visenv.data.json_rows import written_list
from visenv.data.rows import RowLocation, existing_folder, text_of
from visenv.data.table_source import TableSource
from visenv.errors import DataError
from visenv.rewards.vqa import is_too_long
from visenv.text.normalize import composed
from visenv.types import Episode, EventLog, Sample

from ..answer_judge import short_answer
from ..ground_truth import DocumentTruth
from .document_rows import document_of, library_of
from .mp_docvqa import similarity_above

FORMATS = ("Int", "Float", "Str", "List", "None")

NOT_ANSWERABLE = "Not answerable"

_BRACKETED = re.compile(r"\s*+\([^)]*+\)")

_QUOTES = re.compile(r"^['\"]|['\"]$")

_EXACT = (
    re.compile(r"\d+(?:[-\s]\d+)?"),
    re.compile(r"\d{4}[-\s]\d{2}(?:[-\s]\d{2})?"),
    re.compile(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}"),
)


def mmlongbench_score(answer: str, reference: str, form: str) -> float:
    """Return the score of `answer`, 0 to 1.

    An answer longer than `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Args:
        answer: The answer of the policy.
        reference: The right answer; a list is written as in Python.
        form: One of `FORMATS`.

    Raises:
        DataError: If there is no such format.
    """
    if form not in FORMATS:
        raise DataError(f"The answer format must be one of {', '.join(FORMATS)}, got {form!r}.")
    if is_too_long(answer):
        return 0.0
    if form == "Int":
        return _integers(answer, reference)
    if form == "Float":
        return float(_floats(answer, reference))
    if form == "List":
        return _lists(_items(answer), _items(reference))
    return _texts(_clean(answer), _clean(reference))


def _integers(answer: str, reference: str) -> float:
    try:
        return float(int(reference) == int(float(answer)))
    except (ValueError, OverflowError):
        return 0.0


def _floats(answer: str, reference: str) -> bool:
    try:
        given, wanted = float(_clean(answer)), float(_clean(reference))
    except ValueError:
        return False
    return any(_close(given, each) for each in (wanted / 100, wanted, wanted * 100))


def _close(given: float, wanted: float) -> bool:
    if not math.isfinite(given):
        return False
    digits = max(min(_decimals(given), _decimals(wanted)), 2)
    return math.isclose(given, wanted, rel_tol=0.01) or round(given, digits) == round(
        wanted, digits
    )


def _decimals(value: float) -> int:
    _, point, digits = str(value).partition(".")
    return len(digits) if point else 3


def _lists(given: list[Any], wanted: list[Any]) -> float:
    if len(given) != len(wanted):
        return 0.0
    ours, theirs = (sorted(_clean(str(each)) for each in items) for items in (given, wanted))
    if not theirs:
        return 1.0
    if _is_number(theirs[0]) or _is_exact(theirs[0]):
        return float(ours == theirs)
    return min(similarity_above(one, other) for one, other in zip(ours, theirs, strict=True))


def _texts(given: str, wanted: str) -> float:
    return float(given == wanted) if _is_exact(wanted) else similarity_above(given, wanted)


def _items(text: str) -> list[Any]:
    if text.startswith("["):
        try:
            return written_list(text)
        except DataError:
            pass
    return [text]


def _clean(text: str) -> str:
    """Return the text in lower case, without brackets and their content, quotes, ``$`` or ``%``."""
    text = _BRACKETED.sub("", composed(text).lower().strip()).strip()
    text = _QUOTES.sub("", text).strip()
    return text.lstrip("$").strip().rstrip("%").strip()


def _is_exact(text: str) -> bool:
    """Return whether an answer must match exactly, as a link, a page, a time or a date."""
    return (
        "https://" in text
        or text.endswith((".py", "ipynb"))
        or text.startswith("page")
        or "a.m." in text
        or "p.m." in text
        or any(pattern.fullmatch(text) for pattern in _EXACT)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
