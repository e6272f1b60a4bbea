"""Tests that a learned text-only model cannot judge any world about images or documents."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.environments import few
from tests.programs import load_program
from visenv.envs.arm.world.graded_pairs import world as graded
from visenv.envs.arm.world.graded_pairs.responses import GradedResponses, Pattern
from visenv.types import Sample

pytestmark = [pytest.mark.component("scikit-learn"), pytest.mark.component("opencv")]

TRAINING, TEST = 500, 1200
"""With 1,200 test samples, 5 points are 3.5 (two choices) or 4 (four) standard deviations."""


@pytest.fixture(scope="module")
def blind() -> ModuleType:
    return load_program("benchmarks/arm_text_only.py")


@pytest.mark.parametrize("place", few(range(18), 1))
def test_texts_alone_do_not_reveal_the_verdict(blind: ModuleType, place: int) -> None:
    world = list(blind.worlds())[place]
    drawn = blind.draw(world.source, TRAINING + TEST, seed=1)
    reached = blind.accuracy(drawn[:TRAINING], drawn[TRAINING:])
    assert abs(reached - world.chance) <= 0.05, world


def test_learned_model_finds_agreement_between_responses(
    blind: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the model learns: if each wrong response has one flaw, the majority is right."""

    def agreeing(rng: np.random.Generator, facts: int, responses: int) -> GradedResponses:
        truth = (True,) * facts
        best = int(rng.integers(responses))
        flawed: list[Pattern] = [
            tuple(fact != place % facts for fact in range(facts)) for place in range(responses)
        ]
        return GradedResponses((*flawed[:best], truth, *flawed[best + 1 :]), best, truth)

    monkeypatch.setattr(graded, "draw_patterns", agreeing)
    assert _reached(blind, "default", 4) > 0.4


@pytest.mark.soak
def test_learned_model_finds_looks_that_never_change(
    blind: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that the model learns: if all signs are orange squares, other statements are wrong."""
    monkeypatch.setattr(graded, "lacks_looks", lambda preset: False)
    assert _reached(blind, "tiny", 1) > 0.7


def _reached(blind: ModuleType, preset: str, candidates: int) -> Any:
    source = graded.GradedPairs(candidates, preset=preset)
    world = blind.World("ArmPreference", preset, candidates, source)
    drawn = blind.draw(world.source, TRAINING + TEST, seed=1)
    return blind.accuracy(drawn[:TRAINING], drawn[TRAINING:])


def test_questions_without_images_do_not_reveal_the_answer(blind: ModuleType) -> None:
    for _, _, source in blind.question_worlds():
        drawn = blind.draw(source, 600, seed=1)
        training, test = drawn[:400], drawn[400:]
        constant = blind.constant_accuracy(training, test)
        # For an accuracy of 0.2 in 200 questions, the standard deviation is 0.03.
        assert blind.answer_accuracy(training, test) <= constant + 0.09


def test_constant_answer_is_the_most_frequent_of_its_kind(blind: ModuleType) -> None:
    def asked(kind: str, answer: str) -> Sample:
        return Sample(id="a", question="What?", answers=(answer,), kind=kind)

    training = [asked("color", "red"), asked("color", "red"), asked("color", "blue")]
    test = [asked("color", "red"), asked("color", "blue"), asked("shape", "red")]
    assert blind.constant_accuracy(training, test) == pytest.approx(1 / 3)
