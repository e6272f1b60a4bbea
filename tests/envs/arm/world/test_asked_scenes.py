"""Tests plain questions about scenes: ArmVQA has the scenes and the wordings of ArmZoom."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.types import Sample
from visenv.worlds.scenes import ScenesWorld
from visenv.worlds.scenes.asked import QUESTIONS
from visenv.worlds.scenes.world import PLACES, SIZES

pytestmark = pytest.mark.component("opencv")


def drawn(number: int, **options: Any) -> tuple[list[Sample], set[tuple[str, int, int]]]:
    """Return samples of ArmVQA with blank images, and the style and size of each scene."""
    looks = set()

    def blank(self: ScenesWorld, *_: Any) -> Any:
        looks.add((self.preset.style, self.preset.width, self.preset.height))
        return np.zeros((8, 8, 3), np.uint8)

    base: Any = gym.make("visenv/ArmVQA-v0", **options).unwrapped
    # The cache of scenes is bypassed, because it would keep the blank images.
    with patch.multiple(ScenesWorld, _paint=blank, sample=ScenesWorld._make):
        return [base.source.sample(np.random.default_rng(n)) for n in range(number)], looks


def test_scenes_have_every_style_and_size() -> None:
    _, looks = drawn(300)
    assert looks == {(style, *size) for style in PLACES for size in SIZES}


def test_wordings_ask_about_signs_named_in_several_ways() -> None:
    samples, _ = drawn(300)
    for kind, wordings in QUESTIONS.items():
        asked = [sample.question for sample in samples if sample.kind == kind]
        assert len(asked) > 40
        for wording in wordings:
            pattern = re.escape(wording).replace(r"\{sign\}", "the .*sign.*")
            assert any(re.fullmatch(pattern, question) for question in asked), wording
    text = " ".join(sample.question for sample in samples)
    for words in ("sign to the left of the", "the uppermost sign", "the sign nearest to the"):
        assert words in text


def test_answer_is_that_of_the_sign_asked_about() -> None:
    samples, _ = drawn(40)
    for sample in samples:
        truth: Any = sample.ground_truth
        assert sample.answers == (truth.signs[0].answer,)
        assert (truth.target_box, truth.detail_box) == (
            truth.signs[0].box,
            truth.signs[0].detail_box,
        )


def test_tiny_scenes_are_asked_about_in_the_words_of_their_world() -> None:
    samples, looks = drawn(20, preset="tiny")
    assert len(looks) == 1
    world = ScenesWorld("tiny")
    with patch.multiple(ScenesWorld, sample=ScenesWorld._make):
        again = [world.sample(np.random.default_rng(n)).question for n in range(20)]
    assert [sample.question for sample in samples] == again
