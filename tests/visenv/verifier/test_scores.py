"""Tests the scoring functions: numbers worked by hand, and every golden value."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from visenv.errors import ConfigurationError, ServiceError
from visenv.grammar.points import FrameNote, Point, SpanNote
from visenv.rewards.vqa import LONGEST_ANSWER
from visenv.types import Image, QuestionTruth, Sample
from visenv.verifier import (
    FrameReference,
    GatedAggregate,
    Referred,
    Teachers,
    Verifier,
    answer_kind,
    hide_answer,
    matches,
    mean_of_categories,
    outcome_score,
    point_scores,
    probability,
    reasoning_score,
    select_by_rules,
    spatial_score,
    temporal_score,
)
from visenv.verifier.grounding import MAX_POINTS, frame_number, span_frames

IMAGE = Image.from_pixels(np.zeros((10, 20, 3), np.uint8))
SAMPLE = Sample("s", "q?", (IMAGE,), ("yes",))


class Boxes:
    """Finds "cup" in one box and "pair" in two; records the labels."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def boxes(self, seen: FrameReference, label: str) -> Sequence[Any]:
        self.asked.append(label)
        found = {"cup": [(0, 0, 4, 4)], "pair": [(0, 0, 2, 2), (10, 5, 12, 7)]}
        return found.get(label, [])


class Inside:
    """Masks a box by the box itself, and a point by its pixel."""

    async def hits(self, seen: FrameReference, prompts: Any, places: Any) -> Sequence[bool]:
        return [any(_inside(prompt, place) for prompt in prompts) for place in places]


class Pointing:
    async def places(self, seen: FrameReference, label: str) -> Sequence[Any]:
        return [(3, 3)] if label == "bar" else []


def _inside(prompt: Any, place: Any) -> bool:
    if len(prompt) == 2:
        return tuple(map(math.floor, prompt)) == tuple(map(math.floor, place))
    return bool(prompt[0] <= place[0] < prompt[2] and prompt[1] <= place[1] < prompt[3])


@dataclass
class Says:
    """Returns fixed verdicts, as a reasoner and as a judge of descriptions."""

    values: Sequence[float] = (-0.1, -0.3)

    async def log_probabilities(self, sample: Any, reasoning: str, answer: str) -> Any:
        return list(self.values)

    async def frame_is(self, seen: FrameReference, description: str) -> bool:
        return description == "rain"

    async def span_is(self, sample: Any, first: int, last: int, description: str) -> bool:
        return (first, last) in ((0, 1), (1, 3))


def teachers(**more: Any) -> Teachers:
    return Teachers(Boxes(), Inside(), Pointing(), are_local=True, **more)


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


# -------------------------------------------------------------------------------------- spatial


def test_spatial_is_the_share_of_points_in_the_union_of_masks() -> None:
    points = [
        Point(3.9, 3.9, "cup"),  # in the box
        Point(4, 0, "cup"),  # the right edge is outside
        Point(11, 6, "pair"),  # in the second box
        Point(1, 1, "dog"),  # no box is found
    ]
    assert run(spatial_score(SAMPLE, points, teachers())) == 0.5


@pytest.mark.parametrize(
    "point",
    [
        Point(-0.01, 1, "cup"),
        Point(20, 1, "cup"),
        Point(1, 10, "cup"),
        Point(1e308, 1, "cup"),
        Point(1, 1, ""),
    ],
)
def test_spatial_counts_points_outside_and_without_label_as_misses(point: Point) -> None:
    assert run(spatial_score(SAMPLE, [Point(1, 1, "cup"), point], teachers())) == 0.5


def test_spatial_asks_each_label_once_and_looks_up_a_limited_number() -> None:
    made = teachers()
    points = [Point(1, 1 + number / 1e6, "cup") for number in range(10_000)]
    scores = run(point_scores(SAMPLE, [(0, point) for point in points], made))
    assert sum(scores) == MAX_POINTS
    assert made.detector.asked == ["cup"]  # type: ignore[attr-defined]


def test_spatial_uses_the_pointing_model_for_charts() -> None:
    points = [Point(3.5, 3.5, "bar"), Point(3.5, 3.5, "cup")]
    assert run(spatial_score(SAMPLE, points, teachers(), chart=True)) == 0.5
    assert run(spatial_score(SAMPLE, points, teachers())) == 0.5  # the detector finds only the cup


def test_spatial_of_no_points_is_zero() -> None:
    assert run(spatial_score(SAMPLE, [], teachers())) == 0.0


# ------------------------------------------------------------------------------------- temporal


def test_temporal_golden_values() -> None:
    assert mean_of_categories([1, 0], [1], [1, 1, 0], 3) == pytest.approx(0.7222, abs=5e-5)
    assert mean_of_categories([1, 0], [1], [1, 1, 0], 2) == pytest.approx(0.6667, abs=5e-5)
    assert mean_of_categories([], [1], [], 3) == 1.0
    assert mean_of_categories([], [], []) == 0.0


def test_temporal_scores_all_three_categories() -> None:
    video = Sample("v", "q?", (IMAGE,) * 4, ("yes",))
    referred = Referred(
        0,
        points=(Point(1, 1, "cup", 2), Point(1, 1, "cup", 9), Point(1, 1, "cup")),
        frames=(FrameNote(1, None, "rain"), FrameNote(None, 99.0, "rain")),
        spans=(SpanNote(1, 2, None, None, "a"), SpanNote(3, 1, None, None, "b")),
    )
    made = teachers(description_judge=Says())
    score = run(temporal_score(video, (0, 0.5, 1, 1.5), referred, made))
    assert score == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)


@pytest.mark.parametrize(
    ("frame", "time", "number"),
    [
        (1, None, 0),
        (4, 0.0, 3),
        (0, None, None),
        (5, None, None),
        (-1, 1.0, None),
        (None, 0.2, 0),
        (None, 0.3, 1),
        (None, 1.7, 3),
        (None, 1.8, None),
        (None, None, None),
    ],
)
def test_frames_are_found_by_number_or_time(
    frame: int | None, time: float | None, number: int | None
) -> None:
    assert frame_number(frame, time, (0.0, 0.5, 1.0, 1.5)) == number


def test_spans_may_be_open_but_not_reversed() -> None:
    times = (0.0, 0.5, 1.0, 1.5)
    assert span_frames(SpanNote(2, None, None, None, ""), times) == (1, 3)
    assert span_frames(SpanNote(3, 2, None, None, ""), times) is None
    assert span_frames(SpanNote(2, 9, None, None, ""), times) is None
    assert span_frames(SpanNote(None, None, 0.5, 1.0, ""), times) == (1, 2)


# ------------------------------------------------------------------------------------ reasoning


def test_reasoning_golden_values() -> None:
    assert probability([-0.1, -0.3]) == pytest.approx(0.8187, abs=5e-5)
    assert probability([-0.1, -0.3], "product") == pytest.approx(0.6703, abs=5e-5)


@pytest.mark.parametrize("values", [[], [float("nan")], [0.5], [-1.0, float("inf")]])
def test_reasoning_refuses_what_is_no_log_probability(values: list[float]) -> None:
    with pytest.raises(ServiceError):
        probability(values)


def test_reasoning_of_nothing_is_zero() -> None:
    assert run(reasoning_score(SAMPLE, " ", "yes", Says())) == 0.0
    assert run(reasoning_score(SAMPLE, "so", " ", Says())) == 0.0
    assert run(reasoning_score(SAMPLE, "so", "yes", Says())) == pytest.approx(math.exp(-0.2))


def test_answer_can_be_hidden() -> None:
    text = 'A cup of 2.5 l. <point x="4" y="4">cup</point>. So it is 4. There are 44.'
    assert hide_answer(text, "4") == 'A cup of 2.5 l. <point x="4" y="4">cup</point>. There are 44.'
    assert hide_answer("It is Dark  Red!\nOr not", "dark red") == "\nOr not"


COLORS = ("red", "blue", "green")


@pytest.mark.parametrize(
    ("reasoning", "answer", "options", "left"),
    [
        # A letter is stated by the text of its option.
        ("A cup. It is red. So.", "A", COLORS, "A cup. So."),
        ("A cup. It is Red. So.", "(A)", COLORS, "A cup. So."),
        ("A cup. It is red. So.", "A. red", COLORS, "A cup. So."),
        ("A cup. It is red. So.", "red", COLORS, "A cup. So."),
        # A letter itself is found only in upper case and in the form of a list.
        ("A cup is a cup. The answer is (A). So", "A", COLORS, "A cup is a cup. So"),
        ("A cup is a cup. So A: it is so.", "red", COLORS, "A cup is a cup."),
        ("Only plan a) works. Yes", "A", COLORS, "Only plan a) works. Yes"),
        ("We see A) and more. Yes", "B", COLORS, "We see A) and more. Yes"),
        # Points state a place, so their text does not count.
        ('At <point x="1" y="2" alt="red">a red. cup</point> it is.', "A", COLORS, None),
        ('At <point x="1" y="2">red</point> it is red.', "A", COLORS, ""),
        # Without options.
        ("So 20. Then 21.", "20.", (), " Then 21."),
        ("A cup. It is (B). So.", "B", (), "A cup. So."),
        ("A cup. It is dark. So.", "B. dark", (), "A cup. So."),
    ],
)
def test_sentences_that_state_an_option_are_hidden(
    reasoning: str, answer: str, options: tuple[str, ...], left: str | None
) -> None:
    assert hide_answer(reasoning, answer, options) == (reasoning if left is None else left)


# -------------------------------------------------------------------------------------- outcome


@pytest.mark.parametrize(
    ("truth", "answer", "right"),
    [
        ("0.5", "0.54", True),
        ("0.5", "0.56", False),
        ("100.0", "105.0", True),
        ("100.0", "105.01", False),
        ("-20.0", "-19.0", True),
        ("20", "21", False),
        ("20", "20.0", True),
        ("20.", "21", False),
        ("20.", "20", True),
        ("0.5", ".54", True),
        (".5", "0.54", True),
        (".5", "-.5", False),
        ("0.5", ".", False),
        ("0.0", "0.05", True),
        ("0.0", "0.051", False),
        ("0", "0", True),
        ("0.7", "0.75", True),  # exactly 0.05, which floats miss
        ("1,000", "1000", True),
        ("1,000", "1,001", False),
        ("5%", "5", True),
        ("5%", "5 %", True),
        ("inf", "inf", True),
        ("inf", "9", False),
        ("1.0", "inf", False),
        ("1.0", "nan", False),
        ("red cup", "Red  cup.", True),
        ("red cup", "cup", False),
    ],
)
def test_outcome_compares_by_the_kind_of_the_truth(truth: str, answer: str, right: bool) -> None:
    assert matches(answer, truth) is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("B", True),
        ("(b)", True),
        ("B.", True),
        ("blue", True),
        ("B. blue", True),
        ("(B) Blue.", True),
        ("B. red", False),
        ("A", False),
        ("blue or red", False),
        ("A or B", False),
        ("D", False),
        ("", False),
    ],
)
def test_outcome_of_a_choice_is_exact(answer: str, right: bool) -> None:
    options = ("red", "blue", "green")
    assert matches(answer, "blue", options) is right
    assert matches(answer, "B", options) is right


@pytest.mark.parametrize(
    ("answers", "options", "kind"),
    [
        (("red",), ("red", "blue"), "choice"),
        (("20",), (), "whole"),
        (("20.",), (), "whole"),
        ((".5",), (), "decimal"),
        (("1,000",), (), "whole"),
        (("0.5",), (), "decimal"),
        (("red cup",), (), "phrase"),
        (("the man in the red coat leaves",), (), "open"),
    ],
)
def test_answer_kinds(answers: tuple[str, ...], options: tuple[str, ...], kind: str) -> None:
    truth = QuestionTruth(options=options) if options else None
    assert answer_kind(Sample("s", "q", (), answers, ground_truth=truth)) == kind


class Agrees:
    async def are_equivalent(self, sample: Sample, answer: str, truth: str) -> bool:
        return answer == "he goes"


def test_outcome_asks_the_judge_about_open_answers_only() -> None:
    opened = Sample("s", "q", (), ("the man in the red coat leaves",))
    assert run(outcome_score(opened, "he goes", Agrees())) == 1.0
    assert run(outcome_score(opened, "he stays", Agrees())) == 0.0
    assert run(outcome_score(opened, "he goes")) == 0.0
    assert run(outcome_score(Sample("s", "q", (), ("red",)), "he goes", Agrees())) == 0.0
    assert run(outcome_score(opened, "9" * 100_000, None)) == 0.0


class Credulous:
    """Accepts every answer, and records the answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def are_equivalent(self, sample: Sample, answer: str, truth: str) -> bool:
        self.asked.append(answer)
        return True


def test_outcome_does_not_show_an_overlong_answer_to_the_judge() -> None:
    opened, judge = Sample("s", "q", (), ("the man in the red coat leaves",)), Credulous()
    assert run(outcome_score(opened, "he " * LONGEST_ANSWER, judge)) == 0.0
    assert judge.asked == []
    assert run(outcome_score(opened, "he leaves", judge)) == 1.0


# ----------------------------------------------------------------------------------------- gate


def test_gate_golden_values() -> None:
    gate = GatedAggregate()
    terms = {"accuracy": 1.0, "spatial": 0.5, "temporal": None, "reasoning": 0.8}
    assert gate(terms) == pytest.approx(0.7667, abs=5e-5)
    assert gate(terms | {"spatial": 0.0}) == pytest.approx(0.6)
    assert gate(terms | {"spatial": None}) == pytest.approx(0.9)
    assert gate(terms | {"accuracy": 0.0}) == 0.0
    assert gate(terms | {"accuracy": None}) == 0.0
    assert gate(terms | {"accuracy": 0.4}) == 0.4


def test_gate_weights_count() -> None:
    gate = GatedAggregate(weights={"accuracy": 2.0, "spatial": 1.0, "reasoning": 1.0})
    terms = {"accuracy": 1.0, "spatial": 0.5, "reasoning": 0.8}
    assert gate(terms) == pytest.approx((2 + 0.5 + 0.8) / 4)


@pytest.mark.parametrize(
    ("threshold", "weights", "says"),
    [
        (0.0, {}, "threshold"),
        (1.1, {}, "threshold"),
        (math.nan, {}, "threshold"),
        (0.5, {"accuracy": 0.0}, "accuracy above 0"),
        (0.5, {"spatial": -1.0}, "not negative"),
        (0.5, {"spatial": math.nan}, "finite"),
        (0.5, {"reasoning": math.inf}, "finite"),
        (0.5, {"spacial": 1.0}, "spatial"),
    ],
)
def test_gate_refuses_bad_settings(threshold: float, weights: dict[str, float], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        GatedAggregate(threshold, weights)


def test_gate_weights_are_1_where_none_is_named() -> None:
    terms = {"accuracy": 1.0, "spatial": 0.5, "reasoning": 0.8}
    assert GatedAggregate(weights={"spatial": 0.0})(terms) == pytest.approx(0.9)
    assert GatedAggregate(weights={"spatial": 2.0})(terms) == pytest.approx((1 + 1 + 0.8) / 4)


# ------------------------------------------------------------------------------------- verifier


@dataclass(frozen=True)
class FromSource:
    labels: dict[str, str]


@pytest.mark.parametrize(
    ("kind", "source", "chart"),
    [
        ("chart", "", True),
        ("bar chart", "", True),
        ("Map", "", True),
        ("roadmap", "", False),
        ("vegetable", "", False),
        ("", "ChartQA", True),
        ("", "InfographicVQA", True),
        ("", "chart_free_scenes", False),
        ("", "StableMaps", False),
    ],
)
def test_selector_finds_charts_by_whole_words_and_sources(
    kind: str, source: str, chart: bool
) -> None:
    sample = Sample("s", "q", (IMAGE,), ("a",), kind, FromSource({"source": source}))
    functions = select_by_rules(sample, Referred(0)).functions
    assert functions == ("exact", "spatial_chart" if chart else "spatial", "reasoning")


def test_selector_leaves_points_out_where_there_are_several_images() -> None:
    sample = Sample("s", "q", (IMAGE, IMAGE), ("a",))
    assert select_by_rules(sample, Referred(0)).functions == ("exact", "reasoning")


def verify(verifier: Verifier, points: tuple[Point, ...], answer: str | None) -> Any:
    return run(verifier.verify(SAMPLE, Referred(0, points, reasoning="so"), answer))


def test_verifier_combines_the_terms() -> None:
    verifier = Verifier(teachers(reasoner=Says([math.log(0.8)])))
    points = (Point(1, 1, "cup"), Point(9, 9, "cup"))
    found = verify(verifier, points, "yes")
    assert found.reward == pytest.approx(0.7667, abs=5e-5)
    assert found.terms["temporal"] is None
    assert verify(verifier, (), "yes").reward == pytest.approx(0.6)
    skipping = Verifier(teachers(reasoner=Says([math.log(0.8)])), empty="skip")
    assert verify(skipping, (), "yes").reward == pytest.approx(0.9)
    assert verify(verifier, points, "no").reward == 0.0
    assert verify(verifier, points, None).reward == 0.0
    outcome = Verifier(teachers(), terms=("accuracy",))
    assert verify(outcome, (), "yes").reward == 1.0


class Broken:
    """Returns too few verdicts, as a broken segmenter."""

    async def hits(self, seen: FrameReference, prompts: Any, places: Any) -> Sequence[bool]:
        return []


def test_verifier_raises_when_a_teacher_is_broken() -> None:
    broken = Teachers(Boxes(), Broken(), are_local=True)
    with pytest.raises(ServiceError):
        verify(Verifier(broken), (Point(1, 1, "cup"),), "yes")
    nan = Verifier(teachers(reasoner=Says([float("nan")])))
    with pytest.raises(ServiceError):
        verify(nan, (Point(1, 1, "cup"),), "yes")


def test_video_without_points_scores_0_for_its_points() -> None:
    video = Sample("v", "q?", (IMAGE,) * 4, ("yes",))
    spans = (SpanNote(1, 2, None, None, "a"),)
    frames = (FrameNote(1, None, "rain"),)
    times = (0, 0.5, 1, 1.5)
    made = teachers(description_judge=Says())

    def scored(referred: Referred, **options: Any) -> float:
        return float(run(temporal_score(video, times, referred, made, **options)))

    alone = Referred(0, spans=spans)
    assert scored(alone) == pytest.approx((0 + 1) / 2)
    assert scored(alone, needs_points=False) == 1.0  # the mean of non-empty categories
    both = Referred(0, spans=spans, frames=frames)
    assert scored(both) == pytest.approx((0 + 1 + 1) / 3)
    # Points and frames are one category: the mean of 0 and 1.
    assert scored(both, categories=2) == pytest.approx((0.5 + 1) / 2)
    pointed = Referred(0, points=(Point(1, 1, "cup", 2),), spans=spans)
    assert scored(pointed) == scored(pointed, needs_points=False) == 1.0
    assert scored(Referred(0)) == 0.0
