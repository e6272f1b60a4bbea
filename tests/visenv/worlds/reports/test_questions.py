"""Tests questions about reports: the pages have the answer, and the other candidates are wrong."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from tests.environments import few
from visenv.documents.bm25 import Bm25Ranker
from visenv.worlds.reports import ReportsLibrary
from visenv.worlds.reports.questions import KINDS, ReportQuestion, ask
from visenv.worlds.reports.report import Curve, write_report

pytestmark = pytest.mark.component("pypdfium2", "reportlab")

LIBRARY = ReportsLibrary()
RANKER = Bm25Ranker()
SEEDS = range(24)


@cache
def pages_text(seed: int) -> list[str]:
    document = LIBRARY.document(LIBRARY.name(seed))
    return [document.page_text(page + 1) for page in range(len(document))]


def questions(kind: str) -> list[tuple[int, ReportQuestion]]:
    """Return one question for each report for which this kind of question can be asked."""
    made = [(seed, ask(np.random.default_rng(seed), LIBRARY.text(seed), kind)) for seed in SEEDS]
    found = [(seed, question) for seed, question in made if question is not None]
    assert len(found) > 18
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_are_three_wrong_ones_that_differ(kind: str) -> None:
    for _, question in questions(kind):
        assert question.kind == kind
        assert len({question.answer, *question.wrong}) == 4
        assert question.answer not in question.text


@pytest.mark.parametrize("kind", KINDS)
def test_responses_differ_only_in_the_value(kind: str) -> None:
    for seed, question in questions(kind):
        worded = question.respond(np.random.default_rng(seed), "<value>")
        assert worded.count("<value>") == 1
        assert 15 <= len(worded.split()) <= 60
        for value in (question.answer, *question.wrong):
            said = question.respond(np.random.default_rng(seed), value)
            assert said == worded.replace("<value>", value)


@pytest.mark.parametrize("kind", KINDS)
def test_gold_query_finds_the_evidence(kind: str) -> None:
    best = 0
    for seed, question in questions(kind):
        pages = RANKER.rank(LIBRARY.document(LIBRARY.name(seed)), question.gold_query, 5)
        assert set(question.pages) <= set(pages)
        best += set(pages[: len(question.pages)]) == set(question.pages)
    assert best > 15 or kind == "comparison"  # the contents on the cover name both topics


def test_cell_is_read_from_its_row_and_column() -> None:
    for seed, question in questions("table"):
        match = re.search(r" at (.+) in (\d+), in ", question.text)
        assert match
        lines = pages_text(seed)[question.pages[0] - 1].splitlines()
        head = next(line for line in lines if line.startswith("Site ")).split()[1:]
        row = next(line for line in lines if re.fullmatch(re.escape(match[1]) + r"( \d+)+", line))
        cells = row.removeprefix(match[1]).split()
        assert cells[head.index(match[2])] == question.answer
        assert set(question.wrong) < set(" ".join(lines).split())


def test_works_are_counted_in_their_register() -> None:
    for seed, question in questions("count"):
        status = question.text.removesuffix("?").split()[-1]
        lines = pages_text(seed)[question.pages[0] - 1].splitlines()
        assert sum(line.endswith(f" {status}") for line in lines) == int(question.answer)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("lead", "Responsible for {} is (.+?)\\."), ("review", "review of {} took place on (.+?)\\.")],
)
def test_names_and_dates_are_read_from_their_sentence(kind: str, sentence: str) -> None:
    for seed, question in questions(kind):
        texts = [" ".join(text.split()) for text in pages_text(seed)]
        topic = question.gold_query.split(" of " if kind == "review" else " for ")[1]
        found = re.search(sentence.format(topic), texts[question.pages[0] - 1])
        assert found
        assert found[1] == question.answer
        assert all(value in " ".join(texts) for value in question.wrong)  # from this report


def test_budgets_of_two_pages_are_compared() -> None:
    for seed, question in questions("comparison"):
        texts = [" ".join(pages_text(seed)[page - 1].split()) for page in question.pages]
        budgets = {}
        for text in texts:
            found = re.search(r"The budget for (.+?) amounts to (\d+) thousand", text)
            assert found
            budgets[found[1]] = int(found[2])
        assert len(budgets) == 2
        more, less = sorted(budgets, key=budgets.__getitem__, reverse=True)
        gap = budgets[more] - budgets[less]
        assert question.answer == f"{more} has the larger one, by {gap} thousand crowns"
        assert less in question.text


def test_curves_are_read_in_the_right_direction() -> None:
    # 5 -> 20 increases by 15; 40 is the highest value and 5 the lowest.
    report = write_report(1)
    section = next(each for each in report.sections if isinstance(each.exhibit, Curve))
    curve = Curve((2050, 2051, 2052, 2053, 2054, 2055), (30, 5, 20, 25, 40, 10))
    report = report._replace(sections=(section._replace(exhibit=curve),))
    truth = {
        "change from 2050 to 2051": "fell by 25",
        "change from 2051 to 2052": "rose by 15",
        "change from 2052 to 2053": "rose by 5",
        "change from 2053 to 2054": "rose by 15",
        "change from 2054 to 2055": "fell by 30",
        "highest?": "2054",
        "lowest?": "2051",
    }
    seen = set()
    for seed in range(60):
        for kind in ("change", "peak"):
            question = ask(np.random.default_rng(seed), report, kind)
            assert question is not None
            (key,) = (key for key in truth if key in question.text)
            assert question.answer == truth[key]
            seen.add(key)
    assert seen == set(truth)


@pytest.mark.parametrize("kind", ["change", "comparison"])
def test_answers_have_no_odd_one_out(kind: str) -> None:
    for _, question in questions(kind):
        values = [question.answer, *question.wrong]
        numbers = Counter(re.findall(r"by (\d+)", " ".join(values)))
        assert sorted(numbers.values()) == [2, 2]
        directions = Counter(re.sub(r"\d+", "", value) for value in values)
        assert sorted(directions.values()) == [2, 2]


def test_report_without_a_chart_has_no_question_about_one() -> None:
    report = write_report(1)
    curves = tuple(each for each in report.sections if isinstance(each.exhibit, Curve))
    assert ask(np.random.default_rng(0), report._replace(sections=curves), "chart") is None


@pytest.mark.parametrize("kind", few(["change", "comparison"], 1))
def test_right_difference_is_the_smaller_one_as_often_as_not(kind: str) -> None:
    """Check about 1,200 questions: the share must be within 4 standard deviations of a half."""
    rng = np.random.default_rng(0)
    smaller = asked = 0
    for seed in range(1200):
        question = ask(rng, write_report(seed % 150), kind)
        if question is not None:
            numbers = [
                int(re.findall(r"\d+", each)[-1]) for each in (question.answer, *question.wrong)
            ]
            assert len(set(numbers)) == 2
            smaller += numbers[0] == min(numbers)
            asked += 1
    assert asked > 1000
    assert abs(smaller - asked / 2) < 4 * (asked / 4) ** 0.5
