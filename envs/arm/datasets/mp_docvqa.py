"""Loads and scores MP-DocVQA (Tito et al., arXiv 2212.05935): questions about scans, by ANLS.

ANLS is the average normalized Levenshtein similarity of Biten et al., "Scene Text Visual Question
Answering" (2019), eq. 1; DocVQA and MP-DocVQA use it with the threshold 0.5.

Supported layouts; ``<split>`` is ``train``, ``val`` or ``test``:

- the authors' framework: ``imdb_<split>.npy`` or ``imdb_<split>.json``, a list whose first entry is
  a header, with ``question``, ``question_id``, ``answers``, ``answer_page_idx`` (from 0),
  ``image_name`` (one for each page) and ``ocr_tokens`` (words for each page);
- the challenge (RRC, task 4): ``<split>.json`` with a list ``data`` of ``questionId``,
  ``question``, ``doc_id``, ``page_ids``, ``answers`` and ``answer_page_idx``;
- the hub (``lmms-lab/MP-DocVQA``; needs the extra ``data``): ``data/<split>-*.parquet`` with the
  challenge's columns, lists written as text, and the pages as ``image_1`` to ``image_20``.

In the first two, page images are in ``images/`` (or in the folder), named by page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from typing_extensions import override

from visenv.data.json_rows import json_list, json_object, written_list
from visenv.data.parquet import ParquetShards
from visenv.data.rows import (
    RowLocation,
    RowSource,
    existing_folder,
    first_files,
    id_of,
    image_file,
    image_from_cell,
    text_of,
)
from visenv.errors import DataError, UnknownNameError
from visenv.rewards.vqa import edit_similarity, is_too_long, require_references
from visenv.text.normalize import composed
from visenv.types import Image, Sample

from ..ground_truth import DocumentTruth
from .document_rows import PageHandles, PageHandlesLibrary
from .npy import read_objects

THRESHOLD = 0.5

SPLITS = ("train", "val", "test")

MOST_PAGES = 20

_PAGE_COLUMNS = tuple(f"image_{number}" for number in range(1, MOST_PAGES + 1))

_SUFFIXES = ("", ".jpg", ".jpeg", ".png")

_PAGE_OF = re.compile(r"_p[0-9]+$")


def anls(answer: str, references: Sequence[str], threshold: float = THRESHOLD) -> float:
    """Return the similarity to the closest reference, 0 to 1; below `threshold` it counts as 0.

    As in the script of the challenge (and in VLMEvalKit), a similarity of exactly `threshold`
    counts. Case and runs of blanks are ignored. An empty answer matches nothing, and one longer
    than `visenv.rewards.vqa.LONGEST_ANSWER` scores 0.

    Raises:
        DataError: If there is no reference.
    """
    require_references(references)
    if is_too_long(answer):
        return 0.0
    given = _normalized(answer)
    similarity = max(edit_similarity(given, _normalized(reference)) for reference in references)
    return similarity if given and similarity >= threshold else 0.0


def similarity_above(first: str, second: str, threshold: float = THRESHOLD) -> float:
    """Return the edit similarity of two texts without normalization; 0 up to `threshold`.

    MMLongBench-Doc's script leaves out a similarity of exactly `threshold`, unlike `anls`.
    """
    similarity = edit_similarity(first, second)
    return similarity if similarity > threshold else 0.0


def _normalized(text: str) -> str:
    return " ".join(composed(text).lower().split())


class _Question(NamedTuple):
    id: str
    text: str
    answers: tuple[str, ...]
    document: str
    pages: tuple[str, ...]
    evidence: list[int]


class MPDocVQA(RowSource):
    """Loads one split of MP-DocVQA from a local folder, as plain questions about documents.

    A question's document consists of the pages of its row. If two questions have different pages
    of one document, the name of the second document contains the question's id. The test split has
    no answers.

    Args:
        folder: A folder in one of the three layouts.
        split: ``"train"``, ``"val"`` or ``"test"``.

    Attributes:
        library: The documents. Their text layer is the published OCR, if the layout contains it.

    Raises:
        UnknownNameError: If there is no such split.
        DataError: If the folder has none of the layouts, or no row can be used.
    """

    ground_truth = DocumentTruth

    def __init__(self, folder: str | Path, split: str = "val") -> None:
        super().__init__()
        if split not in SPLITS:
            raise UnknownNameError("split of MP-DocVQA", split, SPLITS)
        self.folder = existing_folder(folder)
        self.split = split
        self.library = PageHandlesLibrary()
        self._page_lists: dict[str, tuple[str, ...]] = {}
        imdb = f"imdb_{split}"
        patterns = (f"{imdb}.npy", f"{imdb}.json", f"{split}.json", f"data/{split}-*.parquet")
        files = first_files(self.folder, patterns)
        if files[0].suffix == ".parquet":
            self._load_hub(files)
        else:
            self._load_file(files[0])
        self.require_rows(self.folder)

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        """Return ANLS with the threshold 0.5, 0 to 1.

        Raises:
            DataError: If the sample has no answers, as in the test split.
        """
        if not sample.answers:
            raise DataError(f"{sample.id} has no published answers; use split=val to score here.")
        return anls(answer, sample.answers)

    @override
    def open_images(self, place: RowLocation, images: None) -> tuple[Image, ...]:
        return ()  # the pages are in the library

    # ------------------------------------------------------------------ the three layouts

    def _load_file(self, file: Path) -> None:
        rows = read_objects(file) if file.suffix == ".npy" else json_list(file, "data", "imdb")
        folders = (self.folder / "images", self.folder)
        for number, content in enumerate(rows, start=1):
            if number == 1 and isinstance(content, Mapping) and "question" not in content:
                continue  # the header of an imdb
            place = RowLocation(str(file), number)
            with self.listing_problems(place):
                row = json_object(content)
                question = _question(row)
                files = [image_file(folders, page, _SUFFIXES) for page in question.pages]
                pages = [partial(Image.from_file, path) for path in files]
                self._keep_question(place, question, pages, _page_texts(row))

    def _load_hub(self, files: Sequence[Path]) -> None:
        shards = ParquetShards(files, large=_PAGE_COLUMNS)
        for row in shards.rows():
            with self.listing_problems(row.place):
                question = _question(row.read())
                columns = _PAGE_COLUMNS[: len(question.pages)]
                pages = [partial(_page_cell, shards, row.number, column) for column in columns]
                self._keep_question(row.place, question, pages, [])

    def _keep_question(
        self,
        place: RowLocation,
        question: _Question,
        pages: Sequence[Callable[[], Image]],
        texts: Sequence[str],
    ) -> None:
        identity = f"mp_docvqa-{self.split}-{question.id}"
        name = question.document
        if self._page_lists.setdefault(name, question.pages) != question.pages:
            name = f"{name}-{question.id}"
        truth = DocumentTruth(document=name, evidence_pages=tuple(question.evidence))
        self.add_row(place, Sample(identity, question.text, (), question.answers, "", truth))
        if name not in self.library:
            self.library.add(PageHandles(name, pages, texts))


def _page_cell(shards: ParquetShards, row: int, column: str) -> Image:
    return image_from_cell(shards.cell(row, column), f"{column} of row {row + 1}")


def _question(row: Mapping[str, Any]) -> _Question:
    identity = id_of(row, "question_id", "questionId")
    pages = tuple(_texts(row, "image_name", "page_ids"))
    if not 1 <= len(pages) <= MOST_PAGES:
        raise DataError(f"{len(pages)} pages; a document has 1 to {MOST_PAGES}")
    document = row.get("doc_id") or _PAGE_OF.sub("", Path(pages[0]).stem)
    text = text_of(row, "question")
    answers = tuple(_texts(row, "answers")) if row.get("answers") is not None else ()
    return _Question(identity, text, answers, str(document), pages, _evidence(row, len(pages)))


def _texts(row: Mapping[str, Any], *keys: str) -> list[str]:
    given = next((row[key] for key in keys if row.get(key) is not None), None)
    texts = written_list(given)
    if not all(isinstance(each, str) for each in texts):
        raise DataError(f"{keys[0]} must be a list of texts, got {given!r:.200}")
    return texts


def _evidence(row: Mapping[str, Any], pages: int) -> list[int]:
    given = row.get("answer_page_idx")
    if given is None:
        return []
    text = str(given).strip()
    if not text.isdecimal() or len(text) > 4 or int(text) >= pages:
        raise DataError(f"answer_page_idx must be 0 to {pages - 1}, got {given!r:.80}")
    return [int(text) + 1]


def _page_texts(row: Mapping[str, Any]) -> list[str]:
    words = row.get("ocr_tokens")
    if not isinstance(words, list | tuple):
        return []
    return [" ".join(map(str, page)) if isinstance(page, list | tuple) else "" for page in words]
