"""GradedPairs: grades are what they say, the best one is the verdict, and length tells nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from visenv.data.source import IndexedSource, ProceduralSource
from visenv.envs.arm.ground_truth import JudgingTruth
from visenv.envs.arm.world.graded_pairs import GRADES, GradedPairs
from visenv.envs.arm.world.graded_pairs.responses import respond
from visenv.envs.arm.world.graded_pairs.texts import text_topic
from visenv.envs.arm.world.graded_pairs.topic import Fact, Topic
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample

SMALL: dict[str, Any] = {"preset": "small", "width": 256, "height": 256, "view_side": 128}


def samples(count: int, candidates: int, about: Any = "text", **options: Any) -> list[Sample]:
    world = GradedPairs(candidates, about, **options)
    rng = np.random.default_rng(0)
    return [world.sample(rng) for _ in range(count)]


def stated(text: str, fact: Fact) -> str | None:
    """The value the response gives of a fact: one that fills a statement found in the text."""
    found = {
        value
        for value in (fact.right, *fact.wrong)
        for statement in fact.statements
        if statement.format(value) in text
    }
    assert len(found) <= 1
    return found.pop() if found else None


def grade_of(text: str, topic: Topic) -> str:
    """The grade, by its definition."""
    values = [stated(text, fact) for fact in topic.facts]
    right = [value == fact.right for value, fact in zip(values, topic.facts, strict=True)]
    if None in values:
        assert all(value is None or ok for value, ok in zip(values, right, strict=True))
        assert any(right)
        return "incomplete"
    return "complete" if all(right) else "partly wrong" if any(right) else "wrong"


def test_responses_have_the_grade_they_were_asked_for() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        topic = text_topic(rng)
        for grade in GRADES:
            assert grade_of(respond(rng, topic.facts, grade), topic) == grade


def test_wording_varies() -> None:
    rng = np.random.default_rng(0)
    topic = text_topic(rng)
    assert len({respond(rng, topic.facts, "complete") for _ in range(60)}) > 50


def test_it_is_a_procedural_source() -> None:
    assert isinstance(GradedPairs(), ProceduralSource)
    assert not isinstance(GradedPairs(), IndexedSource)


@pytest.mark.parametrize("candidates", [2, 3, 4])
def test_grades_differ_and_the_verdict_is_the_best(candidates: int) -> None:
    for sample in samples(60, candidates):
        grades = sample.ground_truth.grades
        assert len(sample.ground_truth.candidates) == len(set(grades)) == candidates
        order = ["complete", "incomplete", "partly wrong", "wrong"]
        best = next(grade for grade in order if grade in grades)
        assert grades[int(sample.answers[0]) - 1] == best


def test_a_single_response_is_complete_and_true_or_wrong_and_false() -> None:
    drawn = samples(200, 1)
    for sample in drawn:
        [grade] = sample.ground_truth.grades
        assert sample.answers == (str(grade == "complete"),)
    counts = Counter(sample.ground_truth.grades[0] for sample in drawn)
    assert set(counts) == {"complete", "partly wrong", "wrong"}
    assert abs(counts["complete"] - 100) < 5 * 50**0.5  # five standard deviations


def test_the_best_response_stands_anywhere() -> None:
    """400 draws: each place within 5 standard deviations of a quarter."""
    counts = Counter(sample.answers[0] for sample in samples(400, 4))
    assert set(counts) == {"1", "2", "3", "4"}
    assert all(abs(count - 100) < 5 * 75**0.5 for count in counts.values())


def correlation_of_grade_and_length(drawn: list[Sample]) -> tuple[float, int]:
    """Correlation within samples: lengths as shares of the mean length of their sample."""
    grades, lengths = [], []
    for sample in drawn:
        texts = [len(text) for text in sample.ground_truth.candidates]
        grades += [GRADES.index(grade) for grade in sample.ground_truth.grades]
        lengths += [length / np.mean(texts) for length in texts]
    return float(np.corrcoef(grades, lengths)[0, 1]), len(grades)


@pytest.mark.parametrize("seed", [0, 1])
def test_length_tells_nothing_of_quality(seed: int) -> None:
    """Within 4 standard errors of zero, 1 / sqrt(n); so too for the longest and the shortest."""
    world = GradedPairs(4, "text")
    rng = np.random.default_rng(seed)
    drawn = [world.sample(rng) for _ in range(600)]
    correlation, count = correlation_of_grade_and_length(drawn)
    assert abs(correlation) < 4 / count**0.5
    for pick in (np.argmax, np.argmin):
        hits = sum(
            int(pick([len(text) for text in sample.ground_truth.candidates])) + 1
            == int(sample.answers[0])
            for sample in drawn
        )
        assert abs(hits - 150) < 4 * (600 * 0.25 * 0.75) ** 0.5


@pytest.mark.component("opencv")
@pytest.mark.parametrize("signs", [(1, 1), (3, 3)])
def test_length_tells_nothing_about_scenes_either(signs: tuple[int, int]) -> None:
    drawn = samples(40, 4, "scenes", **SMALL, signs=signs, detail=(16, 16))
    correlation, count = correlation_of_grade_and_length(drawn)
    assert abs(correlation) < 4 / count**0.5


@pytest.mark.component("opencv")
def test_scenes_come_with_image_and_boxes() -> None:
    for sample in samples(6, 2, "scenes", **SMALL):
        assert sample.images[0].size == (256, 256)
        assert sample.kind in ("colour", "text", "count", "relation")
        assert sample.ground_truth.target_box == sample.ground_truth.target_boxes[0]
        assert len(sample.ground_truth.detail_box) == 4
    tiny = GradedPairs(2, "scenes", "tiny").sample(np.random.default_rng(0))
    assert tiny.images[0].size == (1152, 1152)


def test_text_comes_without_an_image() -> None:
    for sample in samples(6, 2):
        assert sample.images == ()
        truth = sample.truth_as(JudgingTruth)
        assert truth == JudgingTruth(candidates=truth.candidates, grades=truth.grades)


@pytest.mark.component("opencv")
@pytest.mark.parametrize("about", ["text", "scenes"])
def test_one_seed_one_sample_to_the_byte(about: Any) -> None:
    world = GradedPairs(4, about, **SMALL)
    one, two = (world.sample(np.random.default_rng(3)) for _ in range(2))
    assert one == two
    assert one != world.sample(np.random.default_rng(4))
    rng = np.random.default_rng(3)
    assert world.sample(rng) == one
    assert world.sample(rng).id != one.id


@pytest.mark.parametrize("candidates", [0, 5, True, "2", 2.0])
def test_a_wrong_number_of_candidates_is_refused(candidates: Any) -> None:
    with pytest.raises(ConfigurationError, match="candidates must be 1 to 4"):
        GradedPairs(candidates)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="scenes, text"):
        GradedPairs(2, "audio")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="tiny"):
        GradedPairs(2, preset="tinny")
