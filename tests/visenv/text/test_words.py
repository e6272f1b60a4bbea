"""Tests the words for search: scripts with and without blanks."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.text.words import bigrams, passages, search_words, with_blanks

# The case folded form of İ and of ǰ has a combining mark.
LATIN = st.text(st.characters(max_codepoint=0x24F, exclude_characters="\u00ad\u00b4İǰ"))
ANY = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Revenue of 2023, in $", ["revenue", "of", "2023", "in"]),
        ("cafe\u0301 ﬁle ＡＢ１２", ["café", "file", "ab12"]),
        ("营业收入", ["营业", "业收", "收入"]),
        ("水", ["水"]),
        ("電車に乗る", ["電車", "に", "乗", "る"]),
        ("カメラ", ["カメ", "メラ"]),
        ("회사의 매출", ["회사", "사의", "매출"]),
        ("ที่ดิน", ["ที่ดิ", "ดิน"]),
        ("iPhone手机15", ["iphone", "手机", "15"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("", []),
        ("。！", []),
    ],
)
def test_search_words(text: str, words: list[str]) -> None:
    assert search_words(text) == words


@given(LATIN)
def test_words_of_latin_texts_are_runs_of_letters_and_digits(text: str) -> None:
    plain = unicodedata.normalize("NFC", text).replace("\u00a0", " ").casefold()
    assert search_words(text) == re.findall(r"\w+", plain)


@given(ANY)
def test_text_with_blanks_has_the_same_words(text: str) -> None:
    assert search_words(with_blanks(text)) == search_words(text)


@given(st.text(st.sampled_from("公司年報二零二三"), min_size=2, max_size=20))
def test_bigrams_contain_every_pair_of_a_run(text: str) -> None:
    for place in range(len(text) - 1):
        assert text[place : place + 2] in bigrams(text)


@given(st.text(st.characters(codec="ascii"), max_size=400), st.integers(1, 20))
def test_passages_of_english_are_its_words(text: str, words: int) -> None:
    split = text.split()
    expected = [" ".join(split[at : at + words]) for at in range(0, len(split), words)]
    assert list(passages(text, words)) == expected


@given(ANY, st.integers(1, 20))
def test_passages_lose_nothing_but_blanks(text: str, words: int) -> None:
    joined = "".join(passages(text, words))
    assert "".join(joined.split()) == "".join(text.split())


def test_chinese_article_is_cut() -> None:
    parts = list(passages("公司二零二三年的营业收入为五亿元。" * 50, 100))
    assert len(parts) > 3
    assert max(map(len, parts)) <= 300
    assert list(passages("营业收入 2023 年", 2)) == ["营业收入", "2023 年"]
