"""Tests which tool calls count: results for the sample, and the evidence that decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from visenv.envs.arm.evidence import own_calls, useful
from visenv.envs.arm.ground_truth import ConstraintCheck, JudgingTruth, judging_sample
from visenv.types import EventLog, Image, Sample, ToolCalled

WORDS = "check_whether_response_word_count_in_range"
KEYWORDS = "check_whether_each_keyword_in_list_mentioned_in_range"


def sample_of(**truth: Any) -> Sample:
    image = Image.from_pixels(np.zeros((100, 200, 3), np.uint8))
    fields = JudgingTruth(candidates=("a",), **truth)
    return judging_sample(id="1", instruction="?", truth=fields, verdict=True, images=[image])


def called(
    tool: str = "zoom",
    ok: bool = True,
    arguments: Mapping[str, Any] = {},
    outputs: tuple[str, ...] = (),
    **detail: Any,
) -> ToolCalled:
    return ToolCalled(0, tool, arguments, ok, "", outputs, detail)


def pages(document: str, *numbers: int, ok: bool = True) -> ToolCalled:
    return called("page", ok, outputs=("observation_1",), document=document, pages=list(numbers))


def crop(
    box: tuple[int, int, int, int],
    scale: float = 1.0,
    enlarged: float = 1.0,
    origin: str = "original_image",
) -> ToolCalled:
    return called(origin=origin, box=list(box), scale=scale, enlarged=enlarged)


PAPER = sample_of(document="report-1", evidence_pages=(2, 5))
ASKED = replace(
    sample_of(document="d", evidence_pages=(2,), answer="31 kW"), question="Which pump?"
)


@pytest.mark.parametrize(
    ("query", "shares_no_word", "counts"),
    [
        ("qxzzv", True, False),
        ("zz qx", True, False),
        ("\u200b", True, False),
        ("PUMPE", True, False),
        ("pump", True, True),  # a scan has no text: the question has the word
        ("power of 31 kW", True, True),
        ("turnover", False, True),  # a word of the page
    ],
)
def test_pages_of_a_query_without_a_meaning_do_not_count(
    query: str, shares_no_word: bool, counts: bool
) -> None:
    detail: dict[str, Any] = {"shares_no_word": True} if shares_no_word else {}
    call = called("query", arguments={"query": query}, document="d", pages=[2], **detail)
    assert useful(EventLog([call]), ASKED, "evidence") is counts
    assert useful(EventLog([call]), ASKED, "belongs")


SIGN = sample_of(detail_box=(100, 40, 120, 60))


@pytest.mark.parametrize(
    ("calls", "belongs", "evidence"),
    [
        ([], False, False),
        ([pages("report-2", 2, 5)], False, False),
        ([pages("report-1", 1)], True, False),
        ([pages("report-1")], False, False),
        ([pages("report-1", 2)], True, False),
        ([pages("report-1", 2, 5, ok=False)], False, False),
        ([pages("report-1", 5, 2)], True, True),
        ([pages("report-1", 5), pages("report-1", 2)], True, True),
        ([pages("report-1", 5), pages("report-2", 2)], True, False),
    ],
)
def test_pages_count_that_are_of_the_document_and_decide(
    calls: list[ToolCalled], belongs: bool, evidence: bool
) -> None:
    assert useful(EventLog(calls), PAPER, "belongs") is belongs
    assert useful(EventLog(calls), PAPER, "evidence") is evidence


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (crop((90, 30, 130, 70)), True),
        (crop((100, 40, 120, 60)), True),
        (crop((102, 40, 120, 60)), True),  # nine tenths of it
        (crop((103, 40, 120, 60)), False),
        (crop((0, 0, 28, 28)), False),  # a corner
        (crop((0, 0, 200, 100)), False),  # the whole image
        (crop((50, 0, 150, 50)), False),  # half of the sign
        (crop((60, 20, 160, 70)), True),  # a quarter of the image
        (crop((60, 20, 161, 70)), False),  # more than a quarter
        (crop((90, 30, 130, 70), scale=0.5, enlarged=2.9), False),  # too small to read
        (crop((90, 30, 130, 70), scale=0.5, enlarged=3.0), True),
        (crop((90, 30, 130, 70), origin="original_image_1"), False),
    ],
)
def test_crop_counts_that_shows_the_region_enlarged(made: ToolCalled, shown: bool) -> None:
    assert useful(EventLog([made]), SIGN, "evidence") is shown


def test_regions_must_all_be_shown() -> None:
    two = sample_of(detail_boxes=((0, 0, 10, 10), (100, 40, 120, 60)))
    first, second = crop((0, 0, 20, 20)), crop((90, 30, 130, 70))
    assert not useful(EventLog([first]), two, "evidence")
    assert useful(EventLog([first, second]), two, "evidence")


LEFT_TOP, TOP = (0, 0, 100, 50), (100, 0, 200, 50)  # quarters of the image of 200 x 100
LEFT, REST = (0, 50, 100, 100), (100, 50, 200, 100)


@pytest.mark.parametrize(
    ("boxes", "shown"),
    [
        ([LEFT_TOP, (90, 30, 130, 70)], True),
        ([TOP, (90, 30, 130, 70)], True),
        ([TOP, TOP, (90, 30, 130, 70), (90, 30, 130, 70)], True),  # repeated parts count once
        ([LEFT_TOP, (100, 20, 200, 70)], True),  # exactly half of the image
        ([LEFT_TOP, (100, 20, 200, 70), (0, 50, 1, 51)], False),
        ([(100, 20, 200, 70), LEFT_TOP, LEFT], False),
        # a crop of the whole image is not part of a sweep
        ([(100, 20, 200, 70), (0, 0, 200, 100)], True),
        ([LEFT_TOP, TOP, LEFT, REST, (90, 30, 130, 70)], False),
    ],
)
def test_crops_that_sweep_over_the_image_show_nothing(
    boxes: list[tuple[int, int, int, int]], shown: bool
) -> None:
    assert useful(EventLog([crop(box) for box in boxes]), SIGN, "evidence") is shown
    assert useful(EventLog([crop(box) for box in boxes]), SIGN, "belongs")


def test_crop_that_is_not_enlarged_is_no_part_of_a_sweep() -> None:
    seen = [crop(box, scale=0.5) for box in (LEFT_TOP, TOP, LEFT, REST)]
    assert useful(EventLog([*seen, crop((90, 30, 130, 70))]), SIGN, "evidence")


@pytest.mark.parametrize(
    ("given", "decides"),
    [
        ({"lower_bound": 20, "upper_bound": 10_000}, True),
        ({"lower_bound": 20, "upper_bound": 1000}, True),  # equivalent to no upper bound
        ({"lower_bound": 20, "upper_bound": 999}, False),
        ({"lower_bound": 0, "upper_bound": 10_000}, False),
        ({"lower_bound": 20, "upper_bound": 10_000, "response": "text_1"}, False),
    ],
)
def test_check_counts_that_decides(given: dict[str, Any], decides: bool) -> None:
    check = ConstraintCheck(name=WORDS, arguments={"lower_bound": 20, "upper_bound": 10_000})
    sample = sample_of(constraint="At least 20 words.", check=check)
    call = called(WORDS, arguments={"response": "text_0", **given}, result=True)
    assert useful(EventLog([call]), sample, "evidence") is decides
    other = call._replace(tool="check_whether_response_paragraph_number_in_range")
    assert not useful(EventLog([other]), sample, "evidence")


def test_evidence_of_at_least_none_is_at_least_one() -> None:
    check = ConstraintCheck(name=WORDS, arguments={"lower_bound": 0, "upper_bound": 50})
    sample = sample_of(constraint="At most 50 words.", check=check)
    for lower, decides in ((0, True), (1, True), (2, False)):
        arguments = {"response": "text_0", "lower_bound": lower, "upper_bound": 50}
        call = called(WORDS, arguments=arguments, result=True)
        assert useful(EventLog([call]), sample, "evidence") is decides


def test_keywords_are_compared_whatever_their_order_and_case() -> None:
    bounds = {"lower_bound_times": 1, "upper_bound_times": 2}
    check = ConstraintCheck(name=KEYWORDS, arguments={"keywords": ["Owl", "fox"], **bounds})
    sample = sample_of(constraint="!", check=check)
    for keywords, decides in ((["fox", "owl"], True), (["fox"], False), (["fox", "cat"], False)):
        arguments = {"response": "text_0", "keywords": keywords, **bounds}
        call = called(KEYWORDS, arguments=arguments, result=True)
        assert useful(EventLog([call]), sample, "evidence") is decides


def test_crop_of_a_page_belongs_as_its_page_does() -> None:
    zoomed = crop((0, 0, 50, 50), origin="observation_1")
    assert own_calls(EventLog([pages("report-1", 1), zoomed]), PAPER)[-1] == zoomed
    assert own_calls(EventLog([pages("report-2", 1), zoomed]), PAPER) == []


def test_evidence_that_belongs_counts_if_none_decides() -> None:
    sample = sample_of()
    assert useful(EventLog([crop((0, 0, 5, 5))]), sample, "evidence")
    assert not useful(EventLog([crop((0, 0, 5, 5), origin="observation_9")]), sample, "evidence")


def test_published_rule_counts_any_result() -> None:
    assert useful(EventLog([pages("report-2", 9)]), PAPER, "published")
    assert not useful(EventLog([pages("report-2", 9, ok=False)]), PAPER, "published")
