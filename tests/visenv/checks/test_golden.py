"""Tests the answers of the dialects arm, mmif (those of the public code) and strict."""

from __future__ import annotations

from typing import Any

import pytest

from visenv.checks import CHECKS, Dialect, check

NAMES = dict(enumerate(CHECKS, start=1))

Vector = tuple[int, str, dict[str, Any], bool]


def within(lower: int, upper: int) -> dict[str, int]:
    return {"lower_bound": lower, "upper_bound": upper}


def times(keyword: str, lower: int, upper: int) -> dict[str, Any]:
    return {"keywords": [keyword], "lower_bound_times": lower, "upper_bound_times": upper}


def affix(text: str) -> dict[str, str]:
    return {"substring": text}


def digits(precision: int) -> dict[str, int]:
    return {"precision": precision}


VERSE = "Roses are red,\nViolets are blue,\nSugar is sweet."

ARM: list[Vector] = [
    (3, "roses -\nviolets -\nsugar", within(3, 3), True),
    (3, "roses -\nviolets\nsugar", within(3, 3), False),
    (3, "roses-\nviolets-\nsugar\nyou", within(4, 4), True),
    (3, VERSE, within(3, 3), False),
    (16, "#cat #cats #Cat cat", times("#cat", 3, 3), True),
    (15, "cat cats Cat's category", times("cat", 2, 2), True),
    (16, "cat cats Cat's category", times("cat", 2, 2), True),
    (17, "50% and 12.5%", digits(1), True),
    (17, "50%", digits(2), True),
    (17, "12.50 %", digits(1), True),
    (18, "3 apples cost 4.50", digits(2), True),
    (18, "v1.2.3", digits(1), True),
    (19, "A4 paper", {}, True),
    (19, "I have 4.", {}, False),
    (19, "covid-19", {}, False),
    (13, "**Hello** there", affix("Hello"), False),
    (13, "...Hello there", affix("hello"), True),
    (14, "That is all!", affix("all"), False),
    (14, "That is all…", affix("ALL."), True),
    (1, "a\n \nb\n\n\n\nc", within(3, 3), True),
    (1, "", within(0, 0), True),
    (5, "well-known fact - yes", within(4, 4), True),
    (8, "Concatenate", affix("CAT"), False),
]

MMIF: list[Vector] = [
    (17, "50% and 12.5%", digits(1), False),
    (17, "50%", digits(0), False),
    (17, "12.50 %", digits(2), True),
    (18, "3 apples cost 4.50", digits(2), False),
    (18, "3 apples", digits(0), True),
    (18, "1,234.50", digits(2), True),
    (18, "v1.2.3", digits(1), True),
    (19, "A4 paper", {}, True),
    (19, "I have 4.", {}, True),
    (19, "I have 4 cats", {}, False),
    (19, "covid-19", {}, False),
    (16, "#cat #cats #Cat cat", times("#cat", 3, 3), False),
    (16, "#cat #cats #Cat cat", times("#cat", 0, 0), True),
    (13, "Hello there", affix("hello"), False),
    (14, "That is all.", affix("all"), False),
    # Not an example of the papers, but follows from their wording.
    (3, "roses -\nviolets -\nsugar", within(3, 3), False),  # mmif has no rule for verse
    (3, "roses -\nviolets -\nsugar", within(1, 1), True),
    (5, "well-known fact - yes", within(4, 4), True),
    (5, "well-known fact ! yes", within(3, 3), True),
    (8, "Concatenate", affix("CAT"), True),
]

STRICT: list[Vector] = [
    # 1: a ruled line is not a paragraph.
    (1, "a\n \nb\n\n\n\nc", within(3, 3), True),
    (1, "one\n\n---\n\ntwo", within(2, 2), True),
    (1, "", within(0, 0), True),
    # 2: a heading ends with the paragraph of its line, list items are sentences, a smiley is not.
    (2, "A title\n\nIt begins. It ends.", within(3, 3), True),
    (2, "We need:\n1. Flour\n2. Eggs", within(3, 3), True),
    (2, "It fell to\n-1. or -2. degrees\n- Ice", within(2, 2), True),
    (2, "Well done! :-)", within(1, 1), True),
    (2, "Mr. Smith left at 5 p.m. sharp.", within(1, 1), True),
    # 3 and 4: lines count in verse, sentences in prose, with or without line breaks.
    (3, VERSE, within(3, 3), True),
    (3, "roses -\nviolets -\nsugar", within(3, 3), True),
    (
        3,
        "The ferry was late and nobody\nknew why. We waited at the pier\nuntil noon.",
        within(2, 2),
        True,
    ),
    (3, "Hello.\nHow are you? I am fine.", within(3, 3), True),
    (4, f"{VERSE}\n\nThat was a poem. It is old.", {"ranges": [[3, 3], [2, 2]]}, True),
    (4, "One. Two.", {"ranges": [[2, 2], [0, 5]]}, False),
    # 5 and 6: a dash between blanks is not a word, "well-known" is one word.
    (5, "well-known fact - yes", within(3, 3), True),
    (5, "* first\n* second", within(2, 2), True),
    (6, "one two\n\n***\n\nthree - four", within(2, 2), True),
    # 7 and 8: upper and lower case are equal, and matches inside words count.
    (8, "Concatenate", affix("CAT"), False),
    (7, "STRASSE", {"substrings": ["xyz", "straße"]}, False),
    # 9 to 14: punctuation at the ends is skipped, unless the substring contains it.
    (13, "**Hello** there", affix("Hello"), True),
    (13, "“Hello,” he said", affix("hello"), True),
    (14, "That is all!", affix("all"), True),
    (14, "That is (all).", affix("ALL."), True),
    (14, "That is all.", affix("!"), False),
    (14, "That is all!)", affix("!"), True),
    (14, "I like music.", affix("C"), True),  # a substring need not be a whole word
    (14, "I like music.", affix("C++"), False),
    (14, "I like C++.", affix("C++"), True),
    (13, "#cat is here", affix("#cat"), True),
    (13, "cat is here", affix("#cat"), False),
    (9, "Well, it rains. Well, it pours.", affix("Well"), True),
    (9, "Well, it rains. It pours.", affix("Well"), False),
    (9, "1. Well, rain.\n2. Well, snow.", affix("Well"), True),
    (12, "Is it true, friend? It is, Friend!", affix("friend"), True),
    (10, "So it began.\n\n**So** it ended.", affix("so"), True),
    (11, "It rains today\n\nIt snows Today!", affix("today"), True),
    # 15 and 16: only whole words count; hashtags and signs are part of a word.
    (16, "#cat #cats #Cat cat", times("#cat", 2, 2), True),
    (15, "cat cats Cat's category", times("cat", 2, 2), True),
    (15, "C++ or c++, not C++11", times("C++", 2, 2), True),
    (15, "_cat_ and **cat**", times("cat", 2, 2), True),
    (15, "New\nYork", times("new york", 1, 1), True),
    (
        16,
        "cat dog",
        {"keywords": ["cat", "Cat", "dog"], "lower_bound_times": 2, "upper_bound_times": 2},
        True,
    ),
    # 17 and 18: integers have no decimals; names, versions and list markers are not numbers.
    (17, "50% and 12.5%", digits(1), False),
    (17, "50%", digits(0), True),
    (17, "50%", digits(2), False),
    (17, "12.50 %", digits(2), True),
    (17, "1,234.5% of 7", digits(1), True),
    (18, "3 apples cost 4.50", digits(2), False),
    (18, "3 apples", digits(0), True),
    (18, "1,234.50 and .25 and 1.50e3", digits(2), True),
    (18, "It weighs 3.5kg.", digits(1), True),
    (18, "v1.2.3 on A4, GPT-4, 192.168.0.1", digits(7), True),
    (18, "1. Tea for 2.50\n2. Milk for 1.25", digits(2), True),
    (18, "It was 2.50.", digits(2), True),
    # 19: only numbers that are whole words count, also at the end of a sentence.
    (19, "A4 paper", {}, True),
    (19, "I have 4.", {}, False),
    (19, "I have 4 cats", {}, False),
    (19, "covid-19 and the 3rd wave", {}, True),
    (19, "1. Tea", {}, False),
    (19, "$5", {}, False),
    (19, "seven", {}, True),
]


def vectors() -> list[tuple[Dialect, int, str, dict[str, Any], bool]]:
    by_dialect: dict[Dialect, list[Vector]] = {"arm": ARM, "mmif": MMIF, "strict": STRICT}
    return [(dialect, *vector) for dialect, rows in by_dialect.items() for vector in rows]


@pytest.mark.parametrize(("dialect", "number", "text", "arguments", "expected"), vectors())
def test_vector(
    dialect: Dialect, number: int, text: str, arguments: dict[str, Any], expected: bool
) -> None:
    assert check(NAMES[number], text, arguments, dialect) is expected


def test_strict_has_a_vector_for_every_check() -> None:
    assert {number for number, *_ in STRICT} == set(NAMES)


def test_19_names() -> None:
    assert len(CHECKS) == 19
    assert NAMES[1] == "check_whether_response_paragraph_number_in_range"
    assert NAMES[16] == "check_whether_total_keyword_in_list_mentioned_in_range"
    assert NAMES[19] == "check_whether_has_no_arabic_number_in_response"
    assert all(name == row.name for name, row in CHECKS.items())


@pytest.mark.parametrize(
    "name", [name for name in CHECKS if "_each_" in name and "list_m" not in name]
)
@pytest.mark.parametrize("dialect", ["strict", "arm", "mmif"])
def test_checks_of_an_empty_response(name: str, dialect: Dialect) -> None:
    arguments = affix("x") if "substring" in name else within(1, 2)
    if name.endswith("range_list"):
        assert not check(name, "", {"ranges": [[1, 2]]}, dialect)
    else:
        assert check(name, " \n\n ", arguments, dialect)
