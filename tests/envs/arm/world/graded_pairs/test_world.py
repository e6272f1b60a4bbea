"""Tests GradedPairs: grades match the texts, the best one is the verdict, length is no cue."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from visenv.data.source import IndexedSource, ProceduralSource
from visenv.envs.arm.ground_truth import JudgingTruth
from visenv.envs.arm.world.graded_pairs import GRADES, GradedPairs
from visenv.envs.arm.world.graded_pairs.responses import grade_of, respond
from visenv.envs.arm.world.graded_pairs.topics import RequiredFact, ResponseTopic, text_topic
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.scenes.signs import FRAMES, SHAPES

SMALL: dict[str, Any] = {"preset": "small", "width": 256, "height": 256, "view_side": 128}


def samples(count: int, candidates: int, about: Any = "text", **options: Any) -> list[Sample]:
    world = GradedPairs(candidates, about, **options)
    rng = np.random.default_rng(0)
    return [world.sample(rng) for _ in range(count)]


def stated(text: str, fact: RequiredFact) -> str | None:
    """Return the value of a fact that the response states, by the templates of its statements."""
    found = {
        value
        for value in (fact.right, *fact.wrong)
        for statement in fact.statements
        if statement.format(value) in text
    }
    assert len(found) <= 1
    return found.pop() if found else None


def flaws_of(text: str, topic: ResponseTopic) -> tuple[int, int]:
    """Return the numbers of wrong statements and of omitted facts in the text."""
    values = [stated(text, fact) for fact in topic.facts]
    wrong = [
        value is not None and value != fact.right
        for value, fact in zip(values, topic.facts, strict=True)
    ]
    return sum(wrong), values.count(None)


def test_responses_state_what_they_are_asked_to() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        topic = text_topic(rng)
        for share in (0.0, 0.5, 0.9):
            claims = [
                None if rng.random() < share else str(rng.choice([fact.right, *fact.wrong]))
                for fact in topic.facts[1:]
            ]
            text = respond(rng, topic.facts, [topic.facts[0].right, *claims])
            assert [stated(text, fact) for fact in topic.facts[1:]] == claims
            assert stated(text, topic.facts[0]) == topic.facts[0].right


@pytest.mark.parametrize(
    ("claims", "grade"),
    [
        (("a", "b"), "complete"),
        (("a", None), "incomplete"),
        (("a", "x"), "partly wrong"),
        (("x", None), "wrong"),
        (("x", "x"), "wrong"),
    ],
)
def test_grades_by_hand(claims: Any, grade: str) -> None:
    facts = [RequiredFact(("{}",), right, ("x",)) for right in "ab"]
    assert grade_of(facts, claims) == grade
    assert grade in GRADES


def test_wording_varies() -> None:
    rng = np.random.default_rng(0)
    topic = next(each for each in iter(lambda: text_topic(rng), None) if len(each.facts) == 3)
    claims = [fact.right for fact in topic.facts]
    assert len({respond(rng, topic.facts, claims) for _ in range(60)}) > 50


def test_graded_pairs_are_a_procedural_source() -> None:
    assert isinstance(GradedPairs(), ProceduralSource)
    assert not isinstance(GradedPairs(), IndexedSource)


@pytest.mark.parametrize("candidates", [2, 3, 4])
def test_verdict_is_the_response_with_the_fewest_flaws(candidates: int) -> None:
    world, rng = GradedPairs(candidates, "text"), np.random.default_rng(0)
    for _ in range(60):
        topic = text_topic(rng)
        with patch.object(world, "_topic", lambda *_, same=topic, **__: same):
            sample = world.sample(rng)
        found = [flaws_of(text, topic) for text in sample.ground_truth.candidates]
        assert len(found) == candidates
        assert found.count(min(found)) == 1
        assert found.index(min(found)) + 1 == int(sample.answers[0])


def test_single_response_is_complete_and_true_or_wrong_and_false() -> None:
    drawn = samples(200, 1)
    for sample in drawn:
        [grade] = sample.ground_truth.grades
        assert sample.answers == (str(grade == "complete"),)
    counts = Counter(sample.ground_truth.grades[0] for sample in drawn)
    assert set(counts) == {"complete", "partly wrong", "wrong"}
    assert abs(counts["complete"] - 100) < 5 * 50**0.5  # five standard deviations


def test_best_response_stands_anywhere() -> None:
    """Check 400 draws: each position is within 5 standard deviations of a quarter."""
    counts = Counter(sample.answers[0] for sample in samples(400, 4))
    assert set(counts) == {"1", "2", "3", "4"}
    assert all(abs(count - 100) < 5 * 75**0.5 for count in counts.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_length_is_independent_of_quality(seed: int) -> None:
    """Check that length does not predict the best response, within 4 standard errors."""
    world = GradedPairs(4, "text")
    rng = np.random.default_rng(seed)
    drawn = [world.sample(rng) for _ in range(600)]
    for pick in (np.argmax, np.argmin):
        hits = sum(
            int(pick([len(text) for text in sample.ground_truth.candidates])) + 1
            == int(sample.answers[0])
            for sample in drawn
        )
        assert abs(hits - 150) < 4 * (600 * 0.25 * 0.75) ** 0.5


@pytest.mark.component("opencv")
def test_scenes_come_with_image_and_boxes() -> None:
    for sample in samples(6, 2, "scenes", **SMALL):
        assert sample.images[0].size == (256, 256)
        assert sample.kind in ("colour", "text", "count", "relation")
        assert sample.ground_truth.target_box == sample.ground_truth.target_boxes[0]
        assert len(sample.ground_truth.detail_box) == 4
        assert sample.ground_truth.detail_box == sample.ground_truth.detail_boxes[0]
        assert len(sample.ground_truth.detail_boxes) == len(sample.ground_truth.target_boxes)


@pytest.mark.component("opencv")
def test_look_of_a_tiny_scene_varies() -> None:
    """Check frames and shapes; with only orange square signs, texts alone revealed the verdict."""
    world, rng = GradedPairs(1, "scenes", "tiny"), np.random.default_rng(0)
    drawn = [world.sample(rng) for _ in range(12)]
    assert {sample.images[0].size for sample in drawn} == {(1152, 1152)}
    text = " ".join(sample.ground_truth.candidates[0] for sample in drawn)
    assert {frame for frame in FRAMES if frame in text} > {"orange"}
    assert {shape for shape in SHAPES if shape in text} > {"square"}


def test_text_comes_without_an_image() -> None:
    for sample in samples(6, 2):
        assert sample.images == ()
        truth = sample.truth_as(JudgingTruth)
        assert truth == JudgingTruth(candidates=truth.candidates, grades=truth.grades)


@pytest.mark.component("opencv")
@pytest.mark.parametrize("about", ["text", "scenes"])
def test_graded_pairs_are_seeded_to_the_byte(about: Any) -> None:
    world = GradedPairs(4, about, **SMALL)
    one, two = (world.sample(np.random.default_rng(3)) for _ in range(2))
    assert one == two
    assert one != world.sample(np.random.default_rng(4))
    rng = np.random.default_rng(3)
    assert world.sample(rng) == one
    assert world.sample(rng).id != one.id


@pytest.mark.parametrize("candidates", [0, 5, True, "2", 2.0])
def test_number_of_candidates_that_is_invalid_is_refused(candidates: Any) -> None:
    with pytest.raises(ConfigurationError, match="candidates must be 1 to 4"):
        GradedPairs(candidates)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="scenes, text"):
        GradedPairs(2, "audio")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="tiny"):
        GradedPairs(2, preset="tinny")
