"""Tests that the overview of a document does not reveal any answer, at any size."""

from __future__ import annotations

import numpy as np
import pytest

from tests.environments import few
from visenv.documents.document import Outlined
from visenv.documents.overview import overview
from visenv.documents.pdf import PdfDocument
from visenv.envs.arm.ground_truth import JudgingTruth
from visenv.envs.arm.world.reports import ReportsWorld
from visenv.types import Pixels, Sample
from visenv.worlds.reports.cards import COLORS, GRAY, PANEL
from visenv.worlds.reports.cards import SIDE as CARD
from visenv.worlds.reports.drawing import draw_outline, draw_report
from visenv.worlds.reports.report import Bars, Curve, Register, Report, Section, Table, write_report

pytestmark = [pytest.mark.component("pypdfium2"), pytest.mark.component("reportlab")]

SAMPLES = 1200
"""For this number of samples, 5 points are 3.5 (two choices) or 4 (four) standard deviations."""


def rewritten(section: Section, other: Section) -> Section:
    """Return the section with other values wherever a question may ask for one."""
    exhibit = section.exhibit
    if isinstance(exhibit, Table):
        sites = tuple(f"Site {place}" for place, _ in enumerate(exhibit.sites))
        exhibit = Table(sites, exhibit.years, exhibit.values[::-1])
    elif isinstance(exhibit, Bars):
        exhibit = Bars(exhibit.sites[::-1], exhibit.values[::-1])
    elif isinstance(exhibit, Curve):
        exhibit = Curve(exhibit.years, exhibit.values[::-1])
    elif isinstance(exhibit, Register):
        exhibit = Register(tuple((work, site, "planned") for work, site, _ in exhibit.rows))
    return section._replace(
        exhibit=exhibit,
        lead=f"{other.lead} the Elder",
        reviewed=other.reviewed,
        budget=other.budget,
        closing=other.closing,
        opening=other.opening,
    )


def with_other_answers(report: Report) -> Report:
    sections = report.sections
    changed = map(rewritten, sections, (*sections[1:], sections[0]))
    return report._replace(board=("A", "B", "C"), approved="1 May 2041", sections=tuple(changed))


@pytest.mark.parametrize("seed", range(6))
def test_reports_with_other_answers_have_the_same_outline_to_the_byte(seed: int) -> None:
    report = write_report(seed)
    other = with_other_answers(report)
    assert draw_report(report) != draw_report(other)
    assert draw_outline(report) == draw_outline(other)


def test_overview_shows_the_outline() -> None:
    world = ReportsWorld()
    document = world.library.document("report-3")
    outline = PdfDocument.from_bytes(draw_outline(write_report(3)), "outline")
    assert len(outline) == len(document)
    assert overview(document).sha256 == overview(outline).sha256
    pages = PdfDocument.from_bytes(draw_report(write_report(3)), "pages")
    assert overview(document).sha256 != overview(pages).sha256


def read_bar(page: Pixels, report: Report, section: Section, site: str) -> float:
    """Return the level of a site's bar: its longest run of color at the middle of its column."""
    assert isinstance(section.exhibit, Bars)
    sites = section.exhibit.sites
    scale = len(page) / 842
    column = (483 - 34) / len(sites)
    middle = round((56 + 34 + column * (sites.index(site) + 0.5)) * scale)
    accent = [int(report.accent[place : place + 2], 16) for place in (1, 3, 5)]
    inked = np.abs(page[:, middle].astype(float) - accent).max(-1) < 50
    runs = "".join("#" if each else " " for each in inked).split()
    return (max(map(len, runs), default=0) / scale) / (260 - 32) * 65


@pytest.mark.parametrize("candidates", few([1, 2, 4], 1))
def test_reader_of_bars_reads_pages_and_not_the_overview(candidates: int) -> None:
    world = ReportsWorld(kinds=["chart"], candidates=[candidates], documents=(0, 30))
    rng = np.random.default_rng(0)
    right = {"page": 0, "outline": 0}
    drawn = [world.sample(rng) for _ in range(SAMPLES)]
    for sample in drawn:
        document = world.library.document(sample.truth_as(JudgingTruth).document)
        assert isinstance(document, Outlined)
        (number,) = sample.truth_as(JudgingTruth).evidence_pages
        for how, page in (
            ("page", document.page_image(number, 448)),
            ("outline", document.page_outline(number, 448)),
        ):
            right[how] += _judged(world, sample, page.pixels) == sample.answers[0]
    chance = 1 / max(2, candidates)
    assert right["page"] / SAMPLES > chance + 0.3
    assert abs(right["outline"] / SAMPLES - chance) <= 0.05


def _judged(world: ReportsWorld, sample: Sample, page: Pixels) -> str:
    truth = sample.truth_as(JudgingTruth)
    report = world.library.text(int(truth.document.removeprefix("report-")))
    section = report.sections[truth.evidence_pages[0] - 2]
    site = next(each for each in section.exhibit.sites if f"at {each}," in sample.question)
    level = read_bar(page, report, section, site)
    levels = section.exhibit.values
    claims = [next(each for each in levels if f" {each} " in text) for text in truth.candidates]
    if len(claims) == 1:
        return str(abs(claims[0] - level) < 4)
    return str(int(np.argmin([abs(claim - level) for claim in claims])) + 1)


@pytest.mark.parametrize("candidates", few([1, 2, 4], 1))
def test_reader_of_stripes_reads_cards_and_not_their_thumbnails(candidates: int) -> None:
    world = ReportsWorld("tiny", candidates=[candidates], documents=(0, 60))
    rng = np.random.default_rng(0)
    right = {CARD: 0, CARD // 3: 0}
    for _ in range(SAMPLES):
        sample = world.sample(rng)
        truth = sample.truth_as(JudgingTruth)
        document = world.library.document(truth.document)
        for side in right:
            page = document.page_image(truth.evidence_pages[0], side).pixels
            right[side] += _judged_card(truth.candidates, page) == sample.answers[0]
    chance = 1 / max(2, candidates)
    assert right[CARD] == SAMPLES
    assert abs(right[CARD // 3] / SAMPLES - chance) <= 0.05


def _judged_card(claims: tuple[str, ...], page: Pixels) -> str:
    left, top, right, bottom = (edge * len(page) // CARD for edge in PANEL)
    panel = page[top + 1 : bottom - 1, left + 1 : right - 1].reshape(-1, 3).astype(float) - GRAY
    stripe = panel[np.argmax(np.abs(panel).sum(1))]
    fits = {name: float(stripe @ (np.array(color) - GRAY)) for name, color in COLORS.items()}
    if len(claims) == 1:
        return str(max(fits, key=fits.__getitem__) == claims[0])
    return str(int(np.argmax([fits[claim] for claim in claims])) + 1)
