"""Tests the content of reports, and that their pages show it: from text layers and pixels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from visenv.documents.pdf import PdfDocument
from visenv.types import Pixels
from visenv.worlds.reports.drawing import CHART_HEIGHT, CHART_WIDTH, draw_report
from visenv.worlds.reports.report import (
    FILLER_SENTENCES,
    OPENING_SENTENCES,
    PAGES,
    STEP,
    TOPICS,
    Bars,
    Curve,
    Register,
    Report,
    Section,
    Table,
    write_report,
)

pytestmark = pytest.mark.component("pypdfium2", "reportlab")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_topics_are_distinguished_by_each_word() -> None:
    titles = [word for topic in TOPICS for word in words(topic.title)]
    assert len(titles) == len(set(titles))
    assert len(TOPICS) >= PAGES[1] - 1
    fixed = " ".join(
        [*FILLER_SENTENCES, *(each.format(company="", topic="") for each in OPENING_SENTENCES)]
    )
    assert not words(fixed) & set(titles)


def test_report_is_a_function_of_its_seed_to_the_byte() -> None:
    assert write_report(7) == write_report(7)
    assert draw_report(write_report(7)) == draw_report(write_report(7))
    assert len({write_report(seed) for seed in range(50)}) == 50


def test_reports_have_all_lengths_and_no_fact_twice() -> None:
    reports = [write_report(seed) for seed in range(300)]
    assert {len(report.sections) + 1 for report in reports} == set(range(PAGES[0], PAGES[1] + 1))
    for report in reports:
        sections = report.sections
        assert [section.page for section in sections] == list(range(2, len(sections) + 2))
        people = [*report.board, *(section.lead for section in sections)]
        dates = [report.approved, *(section.reviewed for section in sections)]
        for facts in (people, dates, [s.budget for s in sections], [s.topic for s in sections]):
            assert len(set(facts)) == len(facts)
        for section in sections:
            assert_unambiguous(section)


def assert_unambiguous(section: Section) -> None:
    exhibit = section.exhibit
    if isinstance(exhibit, Table):
        cells = [value for row in exhibit.values for value in row]
        assert len(set(cells)) == len(cells) == len(exhibit.sites) * len(exhibit.years)
        assert len(set(exhibit.sites)) == len(exhibit.sites)
    elif isinstance(exhibit, Register):
        assert len({work for work, _, _ in exhibit.rows}) == len(exhibit.rows)
        statuses = [status for _, _, status in exhibit.rows]
        assert len({statuses.count(status) for status in statuses}) == 4
    else:
        assert len(set(exhibit.values)) == len(exhibit.values)
        assert all(value % STEP == 0 and value > 0 for value in exhibit.values)


def section_with(exhibit: type) -> tuple[Report, Section]:
    report = write_report(1)
    return report, next(each for each in report.sections if isinstance(each.exhibit, exhibit))


def drawn(report: Report) -> PdfDocument:
    return PdfDocument.from_bytes(draw_report(report), "report")


def test_pages_contain_their_facts_in_their_text_layer() -> None:
    report = write_report(3)
    document = drawn(report)
    assert len(document) == len(report.sections) + 1
    cover = document.page_text(1)
    assert report.company in cover
    assert f"Board: {', '.join(report.board)}" in cover
    for section in report.sections:
        assert f"{section.topic.title}" in cover
        text = " ".join(document.page_text(section.page).split())
        topic = section.topic.phrase
        assert text.startswith(section.topic.title)
        assert f"Responsible for {topic} is {section.lead}." in text
        assert f"The last review of {topic} took place on {section.reviewed}." in text
        assert f"The budget for {topic} amounts to {section.budget} thousand crowns." in text
        assert text.endswith(f"Page {section.page}")


@pytest.mark.parametrize("exhibit", [Bars, Curve])
def test_values_of_a_chart_are_in_no_text(exhibit: type[Bars] | type[Curve]) -> None:
    report, section = section_with(exhibit)
    chart = section.exhibit
    assert isinstance(chart, Bars | Curve)
    other = section._replace(exhibit=chart._replace(values=chart.values[::-1]))
    changed = report._replace(
        sections=tuple(other if each is section else each for each in report.sections)
    )
    one, two = drawn(report), drawn(changed)
    assert one.page_text(section.page) == two.page_text(section.page)
    assert one.page_image(section.page, 560) != two.page_image(section.page, 560)


def read_levels(pixels: Pixels, accent: str, count: int) -> list[int]:
    """Return the level of the highest accent pixel in the middle of each label's column.

    The chart is CHART_WIDTH points wide inside margins of 56; its axis starts 34 points further to
    the right. The lines for 0 and 60 are found by their gray, so that levels are read as a person
    reads.
    """
    scale = pixels.shape[1] / 595
    color = np.array([int(accent[at : at + 2], 16) for at in (1, 3, 5)])
    inked = np.abs(pixels.astype(int) - color).sum(axis=2) < 60
    axis, right = (56 + 34) * scale, (56 + CHART_WIDTH) * scale
    gray = np.abs(pixels.astype(int) - 0x9A).sum(axis=2) < 60
    lines = np.flatnonzero(gray[:, int(axis) + 3 : int(axis) + 9].all(axis=1))
    zero, sixty = lines.max(), lines.min()
    assert (zero - sixty) / scale < CHART_HEIGHT
    levels = []
    for place in range(count):
        middle = int(axis + (right - axis) * (place + 0.5) / count)
        rows = np.flatnonzero(inked[sixty - 20 : zero, middle]) + sixty - 20
        levels.append(STEP * round((zero - rows.min()) / (zero - sixty) * 60 / STEP))
    return levels


def test_bars_end_where_their_values_are() -> None:
    for seed in range(4):
        report = write_report(seed)
        document = drawn(report)
        for section in report.sections:
            if isinstance(section.exhibit, Bars):
                pixels = document.page_image(section.page, 1120).pixels
                values = section.exhibit.values
                assert read_levels(pixels, report.accent, len(values)) == list(values)


def test_dots_of_a_curve_lie_where_their_values_are() -> None:
    for seed in range(4):
        report = write_report(seed)
        document = drawn(report)
        for section in report.sections:
            if isinstance(section.exhibit, Curve):
                pixels = document.page_image(section.page, 1120).pixels
                values = section.exhibit.values
                read = read_levels(pixels, report.accent, len(values))
                assert read == list(values)
