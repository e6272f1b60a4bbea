"""Loads HotpotQA, Bamboogle, MuSiQue and 2WikiMultihopQA: multi-hop questions over Wikipedia.

Supported layouts, of which each set has the released one and that of FlashRAG:

- HotpotQA: ``hotpot_{train_v1.1,dev_distractor_v1,dev_fullwiki_v1,test_fullwiki_v1}.json``, a list
  of ``{_id, question, answer, type, level, supporting_facts, context}``; and
  ``hotpotqa/{train,dev}.jsonl``;
- Bamboogle: ``Bamboogle Prerelease - Sheet1.csv`` with the columns ``Question`` and ``Answer``; and
  ``bamboogle/test.jsonl``. Neither contains sub-queries, articles or other forms of an answer;
- MuSiQue: ``musique_ans_v1.0_{train,dev,test}.jsonl`` (or ``musique_full_…``), also in ``data/``;
  and ``musique/{train,dev}.jsonl``, which contains only the supporting paragraphs. Rows of
  ``musique_full`` that cannot be answered from their paragraphs are skipped;
- 2WikiMultihopQA: ``{train,dev,test}.json``, a list of ``{_id, question, answer, answer_id, type,
  supporting_facts, context, evidences, …}``, also in ``data/``, with the answers' aliases from
  ``id_aliases.json`` (lines ``{Q_id, aliases, demonyms}``) if it is in the same folder; and
  ``2wikimultihopqa/{train,dev}.jsonl``.

The test splits of HotpotQA, MuSiQue and 2WikiMultihopQA have no published answers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from typing_extensions import override

from visenv.data.json_rows import json_lines, json_object
from visenv.data.rows import RowLocation, text_of
from visenv.decoding.files import read_regular
from visenv.errors import DataError

from .multi_hop import MultiHopSource, Row, contexts, supporting_titles

_EARLIER = re.compile(r"#(\d{1,2})(?!\d)")

_HOPS = re.compile(r"[2-4]hop\d?(?=__)")

ALIASES = "id_aliases.json"


class HotpotQA(MultiHopSource):
    """Loads HotpotQA. `Sample.kind` is ``"bridge"`` or ``"comparison"``.

    It has no gold sub-queries: the titles of the supporting articles are used instead.
    """

    name = "hotpotqa"
    patterns = (
        "hotpot_{split}_distractor_v1.json",
        "hotpot_{split}_fullwiki_v1.json",
        "hotpot_{split}_v*.json",
        "hotpotqa/{split}.jsonl",
        "{split}.jsonl",
    )

    @override
    def answers(self, row: Row) -> Iterable[Any]:
        return [row.get("answer")]

    @override
    def gold(self, row: Row) -> tuple[str, list[str], list[str]]:
        titles = supporting_titles(row)
        return str(row.get("type") or ""), titles, list(titles)

    @override
    def paragraphs(self, row: Row) -> Iterable[tuple[str, str]]:
        return contexts(row, "")  # each sentence begins with a blank


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


class MuSiQue(MultiHopSource):
    """Loads MuSiQue. `Sample.kind` is the hop structure in the id, ``"2hop"``, ``"3hop1"``, ….

    Gold sub-queries are the decomposition, with ``#1``, ``#2``… replaced by the answers of earlier
    hops, and ``Green >> performer`` written as ``Green performer``.
    """

    name = "musique"
    patterns = (
        "musique_ans_*_{split}.jsonl",
        "data/musique_ans_*_{split}.jsonl",
        "musique_full_*_{split}.jsonl",
        "data/musique_full_*_{split}.jsonl",
        "musique/{split}.jsonl",
        "{split}.jsonl",
    )

    @override
    def is_question(self, row: Row) -> bool:
        return row.get("answerable") is not False

    @override
    def answers(self, row: Row) -> Iterable[Any]:
        aliases = row.get("answer_aliases") or []
        if not isinstance(aliases, list):
            raise DataError(f"answer_aliases must be a list, got {aliases!r:.200}")
        return [row.get("answer"), *aliases]

    @override
    def gold(self, row: Row) -> tuple[str, list[str], list[str]]:
        hops = _objects(row, "question_decomposition")
        shape = _HOPS.match(str(row.get("id")))
        kind = shape[0] if shape else f"{len(hops)}hop" * bool(hops)
        return kind, _queries(hops), list(dict.fromkeys(_titles(row, hops)))

    @override
    def paragraphs(self, row: Row) -> Iterable[tuple[str, str]]:
        alone = (hop.get("support_paragraph") for hop in _objects(row, "question_decomposition"))
        for paragraph in [*_objects(row, "paragraphs"), *filter(None, alone)]:
            yield text_of(paragraph, "title"), text_of(paragraph, "paragraph_text")


def _queries(hops: Sequence[Row]) -> list[str]:
    answers = [str(hop.get("answer") or "") for hop in hops]

    def earlier(found: re.Match[str]) -> str:
        number = int(found[1])
        return answers[number - 1] if 0 < number <= len(answers) else found[0]

    asked = (_EARLIER.sub(earlier, text_of(hop, "question")) for hop in hops)
    return [" ".join(query.replace(">>", " ").split()) for query in asked]


def _titles(row: Row, hops: Sequence[Row]) -> Iterator[str]:
    """Yield the title of each hop's paragraph."""
    paragraphs = _objects(row, "paragraphs")
    for hop in hops:
        number = hop.get("paragraph_support_idx")
        numbered = [each for each in paragraphs if number is not None and each.get("idx") == number]
        if alone := hop.get("support_paragraph"):
            numbered.insert(0, alone)
        if numbered:
            yield text_of(numbered[0], "title")


def _objects(row: Row, key: str) -> list[Row]:
    given = row.get(key) or []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise DataError(f"{key} must be a list of objects, got {given!r:.200}")
    return given


class WikiMultihop(MultiHopSource):
    """Loads 2WikiMultihopQA. `Sample.kind` is the row's type, for example ``"comparison"``.

    Gold sub-queries are subject and relation of each evidence, ``"Xawery Żuławski mother"``; if a
    row has no evidences, they are the titles of the supporting articles.
    """

    name = "2wikimultihopqa"
    patterns = (
        "{split}.json",
        "data/{split}.json",
        "data_ids*/{split}.json",
        "2wikimultihopqa/{split}.jsonl",
        "{split}.jsonl",
    )

    @override
    def answers(self, row: Row) -> Iterable[Any]:
        return [row.get("answer"), *self._aliases.get(str(row.get("answer_id")), ())]

    @override
    def gold(self, row: Row) -> tuple[str, list[str], list[str]]:
        titles = supporting_titles(row)
        asked = [f"{subject} {relation}" for subject, relation in _evidences(row.get("evidences"))]
        queries = list(dict.fromkeys(asked)) or list(titles)
        return str(row.get("type") or ""), queries, titles

    @override
    def paragraphs(self, row: Row) -> Iterable[tuple[str, str]]:
        return contexts(row, " ")

    @cached_property
    def _aliases(self) -> dict[str, list[str]]:
        file = self.file.with_name(ALIASES)
        known: dict[str, list[str]] = {}
        for place, line in json_lines(file) if file.is_file() else ():
            with self.listing_problems(place):
                row = json_object(line)
                known[text_of(row, "Q_id")] = [*_texts(row, "aliases"), *_texts(row, "demonyms")]
        return known


def _evidences(value: Any) -> list[tuple[str, str]]:
    """Return subject and relation of each triple; FlashRAG has three lists, or none."""
    if isinstance(value, dict):
        columns = [value.get("fact"), value.get("relation"), value.get("entity")]
        if not all(isinstance(column, list) for column in columns):
            raise DataError(f"the evidences are no triples: {value!r:.200}")
        value = [list(triple) for triple in zip(*columns, strict=False)]
    triples = [] if value is None else value
    if not isinstance(triples, list):
        raise DataError(f"the evidences are no triples: {value!r:.200}")
    for triple in triples:
        if not isinstance(triple, list) or len(triple) != 3 or not all(map(_is_text, triple)):
            raise DataError(f"an evidence must be a triple, got {triple!r:.200}")
    return [(subject, relation) for subject, relation, _ in triples]


def _texts(row: Row, key: str) -> list[str]:
    given = row.get(key) or []
    if not isinstance(given, list) or not all(map(_is_text, given)):
        raise DataError(f"{key} must be texts, got {given!r:.200}")
    return given


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
