"""Tests the forms in which texts are compared."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.text.normalize import (
    canonical,
    comparable,
    comparison_tokens,
    composed,
    same_answer,
    same_text,
    without_markup,
)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("cafe\u0301", "café"),
        ("don’t “go”", 'don\'t "go"'),
        ("−5 – 3 — 2", "-5 - 3 - 2"),
        ("Ｃ＋＋　１２％", "C++ 12%"),
        ("𝐁 Ⓑ", "B B"),
        ("\ufeffa\u200bb\u00adc", "abc"),
        ("ﬁne", "fine"),
        ("ｶﾞ", "ガ"),
        ("x² ½", "x² ½"),  # a superscript and a fraction mean something
        ("「答え」", '"答え"'),
    ],
)
def test_canonical(text: str, form: str) -> None:
    assert canonical(text) == form


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("**B**", "B"),
        ("*B* and __C__", "B and C"),
        ("`B`", "B"),
        ("## Title\n> quote\n- item", "Title\nquote\nitem"),
        ("```json\n{}\n```", "{}\n"),
        ("$B$ and \\(C\\)", "B and C"),
        ("$5 or $10", "$5 or $10"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("2*3*4", "2*3*4"),
        ("a_b_c", "a_b_c"),
        ("- 3", "- 3"),  # a minus sign
        ("\\text{\\textbf{B}}", "B"),
        ("\\frac{3}{4}", "3/4"),
        ("x \\leq 5\\%", "x ≤5%"),
        ("~~A~~B", "B"),
        ("<b>B</b>", "B"),
    ],
)
def test_markup_is_removed(text: str, plain: str) -> None:
    assert without_markup(text) == plain


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Red.", "red"),
        ("“red”", "red"),
        ("the  red\ncar", "the red car"),
        ("\\boxed{\\text{Red}}", "red"),
        ("cafe\u0301", "CAFÉ"),
        ("−5", "-5"),
    ],
)
def test_same_text(first: str, second: str) -> None:
    assert same_text(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("-5", "5"),
        ("1.50", "15.0"),
        ("C++", "C#"),
        ("x<5", "x>5"),
        ("", ""),
        (" ", "."),
        ("5!", "5"),
    ],
)
def test_other_texts(first: str, second: str) -> None:
    assert not same_text(first, second)
    assert not same_answer(first, second)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("the dog", "a dog", True),
        ("two dogs", "2 dogs", True),
        ("1,000", "1000", True),
        ("3.0", "3", True),
        ("+3", "3", True),
        ("state-of-the-art", "state of the art", True),
        ("A", "a", True),
        ("the", "a", False),
        ("", "a", False),
        ("$1.50", "$15.0", False),
        ("5%", "5", False),
        ("−5", "5", False),
        ("4", "4.5", False),
    ],
)
def test_same_answer(first: str, second: str, same: bool) -> None:
    assert same_answer(first, second) is same


def test_exact_tokens_keep_punctuation_and_spelling() -> None:
    assert comparison_tokens("[0, 1)", exact=True) == ["[", "0", ",", "1", ")"]
    assert comparison_tokens("[0, 1)") == ["0", "1"]
    assert comparison_tokens("3.0", exact=True) == ["3.0"]
    assert comparison_tokens("3.0") == ["3"]
    assert comparison_tokens("x - 5") == ["x", "-", "5"]


@given(st.text(), st.text())
def test_forms_are_defined_for_any_text(first: str, second: str) -> None:
    assert canonical(canonical(first)) == canonical(first)
    assert same_text(first, first) is (comparable(first) != "")
    assert same_text(first, second) is same_text(second, first)
    assert same_answer(first, second) is same_answer(second, first)
    assert composed(unicodedata.normalize("NFD", first)) == composed(first)


@pytest.mark.parametrize(
    "piece", ["**", "$", "\\text{", "<b ", "~~", "`", "_", "```", "\\frac{", "“"]
)
def test_markup_without_end_takes_linear_time(piece: str) -> None:
    assert isinstance(comparable(piece * 100_000), str)
