"""Loads MuSiQue (Trivedi et al., TACL 2022): questions of two to four hops, decomposed.

Supported layouts: ``musique_ans_v1.0_{train,dev,test}.jsonl`` (or ``musique_full_…``), as
released, also in ``data/``; and FlashRAG's ``musique/{train,dev}.jsonl``, which contains only the
supporting paragraphs. The test split has no published answers.

Rows of ``musique_full`` that cannot be answered from their paragraphs are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from typing_extensions import override

from visenv.data.rows import text_of
from visenv.errors import DataError

from .multi_hop import MultiHopSource, Row

_EARLIER = re.compile(r"#(\d{1,2})(?!\d)")
_HOPS = re.compile(r"[2-4]hop\d?(?=__)")


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
