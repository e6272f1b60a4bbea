"""Tests JudgedScenes: only the decisive detail differs, and the verdict follows from the scene."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from visenv.data.source import IndexedSource, ProceduralSource
from visenv.envs.arm.world.judged_scenes import STATEMENTS, JudgedScenes
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.scenes import KINDS, ScenesWorld

pytestmark = pytest.mark.component("opencv")

SMALL: dict[str, Any] = {"width": 256, "height": 256, "view_side": 128, "signs": (1, 2)}


def samples(count: int, candidates: int, **overrides: Any) -> list[Sample]:
    world = JudgedScenes(candidates, "small", **{**SMALL, **overrides})
    rng = np.random.default_rng(0)
    return [world.sample(rng) for _ in range(count)]


def stated(sample: Sample) -> list[str]:
    """Return the option that each response states, by the templates of statements."""
    found = []
    for text in sample.ground_truth.candidates:
        options = [
            option
            for statement in STATEMENTS[sample.kind]
            for option in KINDS[sample.kind].options
            if re.fullmatch(
                re.escape(statement)
                .replace(r"\{sign\}", "the [a-z ]*sign")
                .replace(r"\{answer\}", re.escape(option)),
                text,
            )
        ]
        assert len(options) == 1, text
        found += options
    return found


def test_judged_scenes_are_a_procedural_source() -> None:
    assert isinstance(JudgedScenes(), ProceduralSource)
    assert not isinstance(JudgedScenes(), IndexedSource)


def test_kinds_of_details_can_all_be_stated() -> None:
    assert set(STATEMENTS) == set(KINDS)
    for statements in STATEMENTS.values():
        assert len(set(statements)) == len(statements) >= 4
        for statement in statements:
            assert statement.count("{answer}") == statement.count("{sign}") == 1


@pytest.mark.parametrize("candidates", [2, 3, 4])
def test_right_response_is_exactly_one_and_the_verdict_names_it(candidates: int) -> None:
    for sample in samples(60, candidates):
        answers = stated(sample)
        assert len(set(answers)) == candidates
        right = [
            number
            for number, answer in enumerate(answers, 1)
            if answer == sample.ground_truth.answer
        ]
        assert [str(number) for number in right] == list(sample.answers)


def test_single_response_is_right_when_the_verdict_is_true() -> None:
    for sample in samples(60, 1):
        [answer] = stated(sample)
        assert sample.answers == (str(answer == sample.ground_truth.answer),)


def test_truth_is_the_scenes_own() -> None:
    """Check that the same generator state makes the same scene without the responses."""
    for candidates in (1, 2):
        [sample] = samples(1, candidates)
        scene = ScenesWorld("small", **SMALL).sample(np.random.default_rng(0))
        assert (sample.id, sample.question, sample.images) == (
            scene.id,
            scene.question,
            scene.images,
        )
        assert (sample.ground_truth.answer,) == scene.answers
        assert sample.ground_truth.target_box == scene.ground_truth.target_box
        assert sample.ground_truth.detail_box == scene.ground_truth.detail_box


def test_responses_of_a_sample_differ_in_the_detail_alone() -> None:
    for sample in samples(40, 4):
        texts = [
            re.sub("the ([a-z]+ [a-z]+ )?sign", "it", text).replace(answer, "…")
            for text, answer in zip(sample.ground_truth.candidates, stated(sample), strict=True)
        ]
        assert len(set(texts)) == 1


def test_sign_is_called_as_the_question_calls_it() -> None:
    for sample in samples(40, 2):
        [name] = re.findall(r"the [a-z]+ [a-z]+ sign|the sign", sample.question)
        assert all(name in text for text in sample.ground_truth.candidates)


def test_verdict_is_not_betrayed_by_place_option_or_wording() -> None:
    """Check 240 draws: each cell is within 5 standard deviations of its share."""
    drawn = samples(240, 4, kinds=("colour",), signs=(1, 1))
    places = Counter(sample.answers[0] for sample in drawn)
    truths = Counter(sample.ground_truth.answer for sample in drawn)
    wordings = Counter(
        sample.ground_truth.candidates[0].replace(stated(sample)[0], "") for sample in drawn
    )
    for counts, share in ((places, 1 / 4), (truths, 1 / 6), (wordings, 1 / 4)):
        deviation = (240 * share * (1 - share)) ** 0.5
        assert len(counts) == round(1 / share)
        assert all(abs(count - 240 * share) < 5 * deviation for count in counts.values())
    singles = Counter(sample.answers[0] for sample in samples(200, 1, kinds=("colour",)))
    assert abs(singles["True"] - 100) < 5 * 50**0.5


def test_kinds_with_too_few_options_are_left_out() -> None:
    assert {sample.kind for sample in samples(40, 4)} == {"colour", "text", "count"}
    assert "relation" in {sample.kind for sample in samples(40, 2)}
    with pytest.raises(ConfigurationError, match=r"4 candidates .* relation have at most 2"):
        samples(1, 4, kinds=("relation",))


def test_presets_are_those_of_the_scenes() -> None:
    sample = JudgedScenes(2, "tiny").sample(np.random.default_rng(0))
    assert sample.images[0].size == (1152, 1152)
    assert sample.kind == "colour"
    with pytest.raises(UnknownNameError, match="tiny"):
        JudgedScenes(2, "tinny")
    with pytest.raises(UnknownNameError, match="difficulty"):
        JudgedScenes(2, dificulty=0.5)


@pytest.mark.parametrize("candidates", [0, -1, True, 2.0, "2"])
def test_number_of_candidates_that_is_invalid_is_refused(candidates: Any) -> None:
    with pytest.raises(ConfigurationError, match="candidates must be 1 or more"):
        JudgedScenes(candidates)


def test_judged_scenes_are_seeded_to_the_byte() -> None:
    world = JudgedScenes(4, "small", **SMALL)
    one, two = (world.sample(np.random.default_rng(3)) for _ in range(2))
    assert one == two
    assert one != world.sample(np.random.default_rng(4))
