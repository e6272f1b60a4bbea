"""Tests documents for a tiny model: readable at 96 px, blank in an overview."""

from __future__ import annotations

import numpy as np
import pytest

from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.pdf import PdfDocument
from visenv.errors import DataError
from visenv.worlds.reports.cards import (
    COLORS,
    GRAY,
    PAGES,
    PANEL,
    ask_card,
    draw_cards,
    write_cards,
)
from visenv.worlds.reports.library import ReportsLibrary

pytestmark = pytest.mark.component("opencv", "pypdfium2", "reportlab")

LEFT, TOP, RIGHT, BOTTOM = PANEL
SEEDS = range(12)


def drawn(seed: int) -> PdfDocument:
    return PdfDocument.from_bytes(draw_cards(write_cards(seed)), "cards")


def test_documents_have_all_lengths_and_at_least_two_colors() -> None:
    documents = [write_cards(seed) for seed in range(200)]
    assert {len(cards) for cards in documents} == set(range(PAGES[0], PAGES[1] + 1))
    assert min(len({card.color for card in cards}) for cards in documents) == 2
    assert {card for cards in documents for card in cards}.__len__() == 2 * len(COLORS)
    assert write_cards(5) == write_cards(5) != write_cards(6)


def test_library_knows_the_color_of_each_page_and_no_value_of_a_report() -> None:
    colors = ReportsLibrary("tiny").values("cards-5")
    assert colors == tuple(card.color for card in write_cards(5))
    assert ReportsLibrary().values("report-5") == ()
    with pytest.raises(DataError, match="There is no document called 'report-5'"):
        ReportsLibrary("tiny").values("report-5")


def test_card_at_96_pixels_has_the_color_in_every_third_line() -> None:
    for seed in SEEDS:
        document = drawn(seed)
        for page, card in enumerate(write_cards(seed), start=1):
            image = document.page_image(page, 96)
            assert image.size == (96, 96)
            panel = image.pixels[TOP:BOTTOM, LEFT:RIGHT]
            across = panel if card.upright else panel.swapaxes(0, 1)
            assert (across[:, 1::3] == COLORS[card.color]).all()
            means = across.reshape(len(across), -1, 3, 3).mean(axis=2)
            assert (means == GRAY).all()


@pytest.mark.parametrize("how", ["rendered small", "averaged"])
def test_panels_are_the_same_gray_in_an_overview_of_three_in_a_row(how: str) -> None:
    import cv2

    for seed in SEEDS:
        document = drawn(seed)
        for page in range(1, len(document) + 1):
            if how == "rendered small":
                small = document.page_image(page, 32).pixels
            else:
                view = document.page_image(page, 96).pixels
                small = np.asarray(cv2.resize(view, (32, 32), interpolation=cv2.INTER_AREA))
            panel = small[TOP // 3 : BOTTOM // 3, LEFT // 3 : RIGHT // 3]
            assert (panel == GRAY).all()


def test_pages_show_their_number_and_contain_it_as_text() -> None:
    document = drawn(0)
    ranker = Bm25Ranker()
    marks = []
    for page in range(1, len(document) + 1):
        assert document.page_text(page) == f"page {page}"
        assert ranker.rank(document, f"page {page}", 5)[0] == page
        marks.append(document.page_image(page, 96).pixels[:TOP].tobytes())
    assert len(set(marks)) == len(document)
    assert np.frombuffer(marks[0], np.uint8).min() < 30


def test_questions_ask_for_a_page_and_wrong_colors_come_from_the_others_first() -> None:
    for seed in range(100):
        cards = write_cards(seed)
        question = ask_card(np.random.default_rng(seed), cards, "colour")
        page = question.pages[0]
        assert question.text == f"What colour are the stripes on page {page}?"
        assert question.gold_query == f"page {page}"
        assert question.answer == cards[page - 1].color
        assert question.respond(np.random.default_rng(0), "red") == "red"
        elsewhere = {card.color for card in cards} - {question.answer}
        values = [question.answer, *question.wrong]
        assert len(set(values)) == len(values) >= 4
        first = min(len(elsewhere), 3)
        assert set(question.wrong[:first]) <= elsewhere
