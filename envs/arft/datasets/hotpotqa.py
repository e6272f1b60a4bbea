"""Loads HotpotQA (Yang et al., EMNLP 2018): questions over two Wikipedia articles.

Supported layouts: ``hotpot_{train_v1.1,dev_distractor_v1,dev_fullwiki_v1,test_fullwiki_v1}
.json``, as released, a list of ``{_id, question, answer, type, level, supporting_facts, context}``;
and FlashRAG's ``hotpotqa/{train,dev}.jsonl``. The test split has no published answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typing_extensions import override

from .multi_hop import MultiHopSource, Row, contexts, supporting_titles


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
