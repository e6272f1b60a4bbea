"""Decides which tool calls count for the tool terms of a reward.

========= ========================================================================================
rule      calls that count
========= ========================================================================================
published any call that returned a result, and for ``R_try`` any call at all (the public code)
belongs   a call with a non-empty result from the sample: pages of its document, a part of one of
          its images or of a page of its document, a check of one of its responses
evidence  as ``belongs``, if the calls together have shown all evidence that decides the verdict
          and are not a sweep
========= ========================================================================================

The evidence of procedural samples is known: ``evidence_pages``, ``detail_boxes`` or ``detail_box``,
or ``check`` of the `JudgingTruth`; ``evidence_pages`` of the `DocumentTruth`; the boxes of the
`QuestionTruth`, except for boxes so large that a crop cannot show them better than the image. If a
sample has none of these, ``evidence`` is the same as ``belongs``.

A sweep is a look at so much of an image or document that finding the evidence is luck: crops of
more than `LARGEST_SWEEP` of the image, or more than `LARGEST_PAGE_SWEEP` of the pages. Of a query,
only the best pages count, one more than there are evidence pages; of common words such as "the"
the result is a list of arbitrary pages. A ranking by meaning returns pages for every text, such as
"qxzzv": the pages of a query count only if a word of the query is in their text, in the question,
in a response or in an answer.

The log does not show whether a policy uses what it sees. Calls that show the evidence therefore
count independent of the answer, but the reward is corrected for chance (`chance_of`): a wrong
answer after the evidence was shown costs what a lucky guess gains. So does a wrong answer after a
query (`searched`): a query for the value that the policy guesses finds the evidence more often if
the guess is right, so that the correction for shown evidence alone would pay for such queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from visenv.text.words import search_words
from visenv.types import EventLog, GroundTruth, QuestionTruth, Sample, ToolCalled
from visenv.types.ground_truth import Box

from .ground_truth import ConstraintCheck, DocumentTruth, JudgingTruth, candidate_names
from .tools.crop import original_name
from .verdicts import verdicts

CallRule = Literal["published", "belongs", "evidence"]

ENLARGED = 3.0
"""Minimum enlargement at which a region counts as shown, relative to the image as first shown. A
region at native size also counts: the lines of procedural scenes are a third of a view pixel."""

LARGEST_PART = 0.25
"""A crop of more than this share of an image is a view of the whole and shows no region of it."""

LARGEST_SWEEP = 0.5
"""Crops that together cover more than this share of an image are a sweep and show no region of it,
because a policy that zooms into all quarters has not searched for anything."""

LARGEST_PAGE_SWEEP = 1 / 3
"""Pages that together are more than this share of a document are a sweep, except for one page more
than there are evidence pages."""

LARGEST_TARGET = LARGEST_PART / 4
"""A target of more than this share of an image is visible without a crop."""

COVERED = 0.9
"""A crop shows a region if it covers at least this share of the region."""

OPEN_END = 1000
"""Upper bounds from this number on mean that there is no bound."""


def useful(log: EventLog, sample: Sample, rule: CallRule) -> bool:
    """Return whether the tool calls of an episode earn the tool reward.

    Args:
        log: The events of the episode.
        sample: The sample of the episode.
        rule: ``"published"`` requires a result, ``"belongs"`` also that a result is part of the
            sample, and ``"evidence"`` also that the results show the evidence of the sample.
    """
    if rule == "published":
        return any(call.ok for call in log.tool_calls)
    own = own_calls(log, sample)
    return bool(own) and (rule == "belongs" or shows_evidence(own, sample))


def own_calls(log: EventLog, sample: Sample) -> list[ToolCalled]:
    """Return the successful calls whose result is from the sample and not empty."""
    images = {original_name(place) for place in range(max(1, len(sample.images)))}
    document = sample.truth_as(GroundTruth).document
    own: list[ToolCalled] = []
    for call in log.tool_calls:
        if call.ok and _is_own(call, document, images):
            images.update(call.outputs)
            own.append(call)
    return own


def _is_own(call: ToolCalled, document: str, images: set[str]) -> bool:
    detail = call.detail
    if "pages" in detail:
        return detail["document"] == document and bool(detail["pages"])
    if "origin" in detail:
        return detail["origin"] in images
    return bool(detail)  # a check of a text: the responses are the only texts


def shows_evidence(calls: Iterable[ToolCalled], sample: Sample) -> bool:
    """Return whether the calls together have shown all evidence that decides the verdict.

    The result is True for a sample without known evidence.
    """
    truth = sample.truth_as(GroundTruth)
    calls = list(calls)
    pages = truth.evidence_pages if isinstance(truth, JudgingTruth | DocumentTruth) else ()
    if pages and not _show_pages(calls, pages, sample):
        return False
    boxes = deciding_boxes(sample)
    if boxes and not _show_all(_close_looks(calls, sample), boxes, sample):
        return False
    check = truth.check if isinstance(truth, JudgingTruth) else None
    if check is None:
        return True
    names = candidate_names(sample)
    return any(_decides(call, check, names) for call in calls)


def searched(log: EventLog, sample: Sample) -> bool:
    """Return whether a query was sent to the sample's document, or found nothing in any."""
    document = sample.truth_as(GroundTruth).document
    return bool(document) and any(
        "query" in call.arguments and (not call.ok or call.detail.get("document") == document)
        for call in log.tool_calls
    )


def knows_evidence(sample: Sample) -> bool:
    """Return whether the evidence that decides the verdict is known."""
    truth = sample.ground_truth
    pages = isinstance(truth, JudgingTruth | DocumentTruth) and bool(truth.evidence_pages)
    check = isinstance(truth, JudgingTruth) and truth.check is not None
    return pages or check or bool(deciding_boxes(sample))


def chance_of(sample: Sample) -> float:
    """Return the probability that a random guess is right, 0 if no possible answers are known."""
    truth = sample.ground_truth
    if isinstance(truth, JudgingTruth):
        return 1 / len(verdicts(len(truth.candidates)))
    options = getattr(truth, "options", ())
    return 1 / len(options) if len(options) > 1 else 0.0


def _show_pages(calls: Iterable[ToolCalled], evidence: Sequence[int], sample: Sample) -> bool:
    """Return whether the calls show all evidence pages, and are not a sweep."""
    allowed = len(set(evidence)) + 1
    pages: set[int] = set()
    found: set[int] = set()
    total = 0
    for call in calls:
        best = call.detail.get("pages", ())[:allowed]
        pages.update(best)
        if not call.detail.get("shares_no_word") or _is_about(call, sample):
            found.update(best)
        total = max(total, call.detail.get("document_pages", 0))
    is_sweep = total > 0 and len(pages) > max(allowed, LARGEST_PAGE_SWEEP * total)
    return set(evidence) <= found and not is_sweep


def _is_about(call: ToolCalled, sample: Sample) -> bool:
    """Return whether the query of a call has a word of the sample."""
    truth = sample.ground_truth
    texts = [sample.question, *sample.answers, getattr(truth, "gold_query", "")]
    texts += [getattr(truth, "answer", ""), *getattr(truth, "candidates", ())]
    words = set(search_words(str(call.arguments.get("query", ""))))
    return not words.isdisjoint(word for text in texts for word in search_words(text))


def deciding_boxes(sample: Sample) -> Sequence[Box]:
    """Return the known boxes of the first image that must be enlarged."""
    truth = sample.ground_truth
    if isinstance(truth, JudgingTruth):
        return truth.detail_boxes or (() if truth.detail_box is None else (truth.detail_box,))
    if not isinstance(truth, QuestionTruth) or not sample.images:
        return ()
    if truth.detail_box is not None:
        return (truth.detail_box,)
    boxes = truth.target_boxes or (() if truth.target_box is None else (truth.target_box,))
    width, height = sample.images[0].size
    return [box for box in boxes if _area(box) <= LARGEST_TARGET * width * height]


def _close_looks(calls: Iterable[ToolCalled], sample: Sample) -> list[Sequence[float]]:
    """Return the boxes of the calls that cropped the first image and enlarged the crop."""
    width, height = sample.images[0].size
    return [
        call.detail["box"]
        for call in calls
        if call.detail.get("origin") == original_name(0)
        and _area(call.detail["box"]) <= LARGEST_PART * width * height
        and (call.detail["scale"] >= 1 or call.detail["enlarged"] >= ENLARGED)
    ]


def _show_all(looks: Sequence[Sequence[float]], regions: Sequence[Box], sample: Sample) -> bool:
    """Return whether each region is in one of the boxes, and the boxes are not a sweep."""
    width, height = sample.images[0].size
    return _area_of_all(looks) <= LARGEST_SWEEP * width * height and all(
        any(_area(_common(look, region)) >= COVERED * _area(region) for look in looks)
        for region in regions
    )


def _area_of_all(boxes: Sequence[Sequence[float]]) -> float:
    """Return the area of the union of boxes."""
    across = np.unique([edge for box in boxes for edge in box[::2]])
    down = np.unique([edge for box in boxes for edge in box[1::2]])
    covered = np.zeros((len(down), len(across)), bool)
    for left, top, right, bottom in boxes:
        rows = slice(*np.searchsorted(down, (top, bottom)))
        covered[rows, slice(*np.searchsorted(across, (left, right)))] = True
    areas = np.outer(np.diff(down, append=0), np.diff(across, append=0))
    return float(areas[covered].sum())


def _common(one: Sequence[float], two: Sequence[float]) -> tuple[float, float, float, float]:
    return max(one[0], two[0]), max(one[1], two[1]), min(one[2], two[2]), min(one[3], two[3])


def _area(box: Sequence[float]) -> float:
    left, top, right, bottom = box
    return max(0.0, right - left) * max(0.0, bottom - top)


def _decides(call: ToolCalled, check: ConstraintCheck, names: Sequence[str]) -> bool:
    """Return whether a call ran the deciding check on a response, with its arguments."""
    given = call.arguments
    return (
        call.tool == check.name
        and given.get("response") in names
        and _comparable(given, check.arguments) == _comparable(check.arguments, check.arguments)
    )


def _comparable(given: Mapping[str, Any], keys: Iterable[str]) -> list[Any]:
    return [_folded(key, given.get(key)) for key in keys]


def _folded(key: str, value: Any) -> Any:
    """Return a normalized argument, so that equivalent arguments are equal."""
    if isinstance(value, str):
        return value.strip().casefold()
    if isinstance(value, list | tuple):
        folded = [_folded(key, each) for each in value]
        return sorted(folded) if folded and isinstance(folded[0], str) else folded
    if key.startswith("upper_bound") and isinstance(value, int):
        return min(value, OPEN_END)
    if key == "lower_bound" and isinstance(value, int):
        return max(value, 1)  # every text has a paragraph, a sentence and a word
    return value
