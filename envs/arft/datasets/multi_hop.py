"""Loads multi-hop questions in text, in the layout of their authors or of FlashRAG.

FlashRAG (``RUC-NLPIR/FlashRAG_datasets``) has every set as ``<name>/<split>.jsonl`` with lines
``{"id", "question", "golden_answers": [...], "metadata": {...}}``. The metadata are the fields of
the original set, with lists of pairs turned into pairs of lists; this module reads both the same
way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from visenv.data.json_rows import json_object, read_rows
from visenv.data.rows import (
    RowLocation,
    RowSource,
    existing_folder,
    first_files,
    id_of,
    text_of,
)
from visenv.errors import DataError, UnknownNameError
from visenv.search.corpus import Passage
from visenv.types import Image, Sample

from ..rewards.qa import Compat, token_f1
from ..search.ground_truth import SearchTruth

Row = Mapping[str, Any]


class MultiHopSource(RowSource):
    """Loads one split of a set of multi-hop questions from a local folder.

    `Sample.ground_truth` is a `SearchTruth`. The samples of a split whose answers are not published
    have no answers, and scoring one raises a `DataError`.

    A subclass sets the class attributes, implements `answers` and `gold`, and may override
    `paragraphs`, `is_question` and `contents`.

    Attributes:
        name: The name of the set, which ids begin with.
        splits: The splits, the default first.
        hidden: The splits whose answers are not published.
        file: The file of rows.
        patterns: The file names, relative to the folder, in order of preference; ``{split}`` is
            replaced by the split.

    Args:
        folder: The folder with the files.
        split: One of `splits`; the first by default.

    Raises:
        UnknownNameError: If there is no such split.
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = SearchTruth
    name: ClassVar[str]
    splits: ClassVar[Sequence[str]] = ("dev", "train", "test")
    hidden: ClassVar[Sequence[str]] = ("test",)
    patterns: ClassVar[Sequence[str]]

    def __init__(self, folder: str | Path, split: str = "") -> None:
        super().__init__()
        self.split = split or self.splits[0]
        if self.split not in self.splits:
            raise UnknownNameError(f"split of {self.name}", split, self.splits)
        self.folder = existing_folder(folder)
        patterns = [each.format(split=self.split) for each in self.patterns]
        self.file = first_files(self.folder, patterns)[0]
        for place, content in self.contents():
            with self.listing_problems(place):
                row = _flat(content)
                if self.is_question(row):
                    self.add_row(place, self._sample(row))
        self.require_rows(self.folder)

    def score(self, answer: str, sample: Sample, compat: Compat = None) -> float:
        """Return token F1 of the answer, 0 to 1.

        Raises:
            DataError: If the sample has no answers, as in a split with hidden answers.
        """
        return token_f1(answer, sample.answers, compat)

    def passages(self) -> Iterator[Passage]:
        """Yield every distinct context paragraph of the set, in the file's order.

        Rows whose paragraphs cannot be read are added to `problems`.
        """
        seen: set[tuple[str, str]] = set()
        for place, content in self.contents():
            found: list[tuple[str, str]] = []
            with self.listing_problems(place):
                found = list(self.paragraphs(_flat(content)))
            for title, text in found:
                if text.strip() and (title, text) not in seen:
                    seen.add((title, text))
                    yield Passage(title, text)

    @abstractmethod
    def answers(self, row: Row) -> Iterable[Any]:
        """Return the answers of a row of the original layout, aliases included."""

    @abstractmethod
    def gold(self, row: Row) -> tuple[str, list[str], list[str]]:
        """Return the row's kind, its sub-queries and the titles of its articles."""

    def paragraphs(self, row: Row) -> Iterable[tuple[str, str]]:
        """Return the title and text of each paragraph of the row."""
        return ()

    def is_question(self, row: Row) -> bool:
        """Return whether the row is a question; other rows are skipped."""
        return True

    def _sample(self, row: Row) -> Sample:
        question = text_of(row, "question")
        answers = row["golden_answers"] if "golden_answers" in row else self.answers(row)
        kind, queries, articles = self.gold(row)
        truth = SearchTruth(queries=tuple(queries), articles=tuple(articles), split=self.split)
        identity = f"{self.name}-{self.split}-{id_of(row, '_id', 'id')}"
        return Sample(identity, question, (), self._checked(answers), kind, truth)

    def _checked(self, answers: Any) -> tuple[str, ...]:
        if not isinstance(answers, list | tuple):
            raise DataError(f"the answers must be a list, got {answers!r:.200}")
        published = [answer for answer in answers if answer is not None]
        if not all(isinstance(answer, str) for answer in published):
            raise DataError(f"an answer is not text: {answers!r:.200}")
        distinct = tuple(dict.fromkeys(answer for answer in published if answer.strip()))
        if not distinct and self.split not in self.hidden:
            raise DataError(f"expected at least one answer with text, got {answers!r:.200}")
        return distinct

    def contents(self) -> Iterator[tuple[RowLocation, Any]]:
        """Yield the rows of `file` with their places, as they are in the file."""
        return read_rows(self.file, "data")

    @override
    def open_images(self, place: RowLocation, images: None) -> tuple[Image, ...]:
        return ()


def titled(value: Any, *names: str) -> list[tuple[str, Any]]:
    """Return titles with their texts: ``[[title, x], …]`` or ``{"title": […], name: […]}``.

    Args:
        value: One of these forms; None gives an empty list.
        names: The possible keys of the second list.

    Raises:
        DataError: If it has another form.
    """
    if value is None:
        return []
    pairs = _zipped(value, names) if isinstance(value, dict) else value
    if not isinstance(pairs, list):
        raise DataError(f"no titles with their {' or '.join(names)}: {value!r:.200}")
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise DataError(f"no title with its {' or '.join(names)}: {pair!r:.200}")
    return [(title, beside) for title, beside in pairs]


def _zipped(value: Row, names: Sequence[str]) -> list[Any] | None:
    """Return the pairs of two lists of equal length; None if the value has another form."""
    beside = next((value[name] for name in names if name in value), None)
    titles = value.get("title")
    if isinstance(titles, list) and isinstance(beside, list) and len(titles) == len(beside):
        return list(zip(titles, beside, strict=True))
    return None


def supporting_titles(row: Row) -> list[str]:
    """Return the distinct titles of a row's ``supporting_facts``, in order.

    Raises:
        DataError: If they have another form.
    """
    return list(dict.fromkeys(title for title, _ in titled(row.get("supporting_facts"), "sent_id")))


def contexts(row: Row, between: str) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs of a row's ``context``, their sentences joined by `between`.

    Raises:
        DataError: If it has another form.
    """
    for title, sentences in titled(row.get("context"), "sentences", "content"):
        if not isinstance(sentences, list) or not all(isinstance(each, str) for each in sentences):
            raise DataError(f"the sentences of {title!r:.80} must be texts, got {sentences!r:.200}")
        yield title, between.join(sentences)


def _flat(content: Any) -> dict[str, Any]:
    """Return the row, merged with the metadata that FlashRAG keeps in a field."""
    row = json_object(content)
    metadata = row.get("metadata")
    if metadata is None:
        return row
    if not isinstance(metadata, dict):
        raise DataError(f"the metadata must be an object, got {metadata!r:.200}")
    return {**metadata, **row}
