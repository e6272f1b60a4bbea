"""Loads 2WikiMultihopQA (Ho et al., COLING 2020): questions made from Wikidata's triples.

Supported layouts: ``{train,dev,test}.json``, as released, a list of ``{_id, question, answer,
answer_id, type, supporting_facts, context, evidences, …}``, also in ``data/``, with the answers'
aliases from ``id_aliases.json`` (lines ``{Q_id, aliases, demonyms}``) if it is in the same folder;
and FlashRAG's ``2wikimultihopqa/{train,dev}.jsonl``. The test split has no published answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from typing_extensions import override

from visenv.data.json_rows import json_lines, json_object
from visenv.data.rows import text_of
from visenv.errors import DataError

from .multi_hop import MultiHopSource, Row, contexts, supporting_titles

ALIASES = "id_aliases.json"


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
