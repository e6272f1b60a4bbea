"""Tests the ranking of the pages of documents by BM25."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from tests.text_documents import TextDocument
from visenv.documents.bm25 import Bm25Ranker, words


class CountedDocument(TextDocument):
    """Counts the reads of its pages."""

    reads = 0

    @override
    def page_text(self, page: int) -> str:
        type(self).reads += 1
        return super().page_text(page)


def test_pages_come_best_first_and_only_those_with_a_word() -> None:
    document = TextDocument("d", ["nothing", "red bike", "red car", "red bike, red bike", ""])
    assert Bm25Ranker().rank(document, "Red BIKE!", 5) == [4, 2, 3]
    assert Bm25Ranker().rank(document, "Red BIKE!", 1) == [4]


def test_ties_go_to_the_earlier_page() -> None:
    document = TextDocument("d", ["other", "same words", "same words", "same words"])
    assert Bm25Ranker().rank(document, "words", 2) == [2, 3]


@pytest.mark.parametrize("query", ["", "   ", "?!", "absent", "\x00", "\ud800", "🙂"])
def test_ranker_without_a_hit(query: str) -> None:
    assert Bm25Ranker().rank(TextDocument("d", ["some words", "more"]), query, 5) == []


def test_document_without_text_has_no_hits() -> None:
    assert Bm25Ranker().rank(TextDocument("scan", ["", "", ""]), "words", 5) == []


def test_numbers_and_other_scripts_are_words() -> None:
    assert words("Größe 12.5 % naïve Straße") == ["grösse", "12", "5", "naïve", "strasse"]
    document = TextDocument("d", ["revenue 2019", "revenue 2020", "выручка 2021"])
    assert Bm25Ranker().rank(document, "2020", 5) == [2]
    assert Bm25Ranker().rank(document, "ВЫРУЧКА", 5) == [3]


@pytest.mark.parametrize(
    ("pages", "queries"),
    [
        (
            ["公司二零二三年的营业收入为五亿元", "董事会成员包括张伟和李娜", "other words"],
            {"营业收入": [1], "董事会": [2], "张伟": [2], "利润": []},
        ),
        (
            ["売上高は前年より増加した", "取締役会のメンバー", "カメラの出荷台数"],
            {"売上高": [1], "取締役会": [2], "カメラ": [3], "利益": []},
        ),
        (
            ["กำไรสุทธิของบริษัทเพิ่มขึ้น", "คณะกรรมการบริษัท"],
            {"กำไรสุทธิ": [1], "คณะกรรมการ": [2]},
        ),
        (
            ["회사의 매출은 백억원이다", "이사회는 다섯 명이다"],
            {"매출": [1], "이사회": [2], "회사": [1], "직원": []},
        ),
        (
            ["The revenue (营业收入) of 2023", "iPhone手机的价格", "price of a phone"],
            {"营业收入": [1], "revenue": [1], "手机": [2], "iPhone": [2], "２０２３": [1]},
        ),
        (["cafe\u0301 de Flore", "the ﬁnal page"], {"caf\u00e9": [1], "final": [2]}),
    ],
)
def test_scripts_without_blanks_are_searched(
    pages: list[str], queries: dict[str, list[int]]
) -> None:
    document = TextDocument("d", pages)
    for query, best in queries.items():
        assert Bm25Ranker().rank(document, query, 3)[: len(best) or 1] == best


def test_document_is_read_once_while_its_statistics_are_kept() -> None:
    CountedDocument.reads = 0
    document, ranker = CountedDocument("d", ["one", "two"]), Bm25Ranker()
    assert ranker.rank(document, "two", 1) == [2]
    assert ranker.rank(document, "one", 1) == [1]
    assert CountedDocument.reads == 2  # each of the two pages once


def test_documents_of_one_name_are_not_mistaken_for_each_other() -> None:
    ranker = Bm25Ranker()
    for page in range(1, 40):  # each is freed before the next is made, so memory addresses repeat
        texts = ["other"] * 40
        texts[page - 1] = "wanted"
        assert ranker.rank(TextDocument("report", texts), "wanted", 5) == [page]


def test_ranker_cache_is_bounded() -> None:
    ranker = Bm25Ranker(entries=1000)
    for number in range(500):
        ranker.rank(TextDocument(f"d{number}", [f"a b c word{number}"] * 3), "a", 1)
        assert ranker._known.size <= 1000


def test_unreadable_page_is_logged_and_the_others_are_found(
    caplog: pytest.LogCaptureFixture,
) -> None:
    document = TextDocument("d", ["a", "b", "a"], broken=[2])
    assert Bm25Ranker().rank(document, "a b", 3) == [1, 3]
    assert "Page 2 of 'd' is broken" in caplog.text


def test_ranker_pickles() -> None:
    ranker = Bm25Ranker(k1=0.5)
    document = TextDocument("d", ["one", "two"])
    ranker.rank(document, "two", 1)
    again = pickle.loads(pickle.dumps(ranker))
    assert (again.k1, again.rank(document, "two", 1)) == (0.5, [2])


@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), st.text(max_size=60))
def test_ranker_with_any_texts_and_queries(texts: list[str], query: str) -> None:
    found = Bm25Ranker().rank(TextDocument("d", texts), query, 3)
    assert len(set(found)) == len(found) <= 3
    asked = set(words(query))
    for page in found:
        assert asked & set(words(texts[page - 1]))
    having = [page for page, text in enumerate(texts, 1) if asked & set(words(text))]
    assert len(found) == min(3, len(having))
