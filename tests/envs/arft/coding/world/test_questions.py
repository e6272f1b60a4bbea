"""What is asked in the procedural worlds: answers that are in the image, seen or computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.envs.arft.coding.world.flags import FlagsWorld
from visenv.envs.arft.coding.world.questions import LONG_SIDE, PageQuestions, procedural
from visenv.envs.arft.world.little_pictures import COLOURS
from visenv.errors import UnknownNameError

PAGES = PageQuestions()


@given(st.integers(0, 2**32))
@settings(max_examples=10)
@pytest.mark.component("pypdfium2", "reportlab")
def test_a_page_question_is_answered_by_its_page(seed: int) -> None:
    sample = PAGES.sample(np.random.default_rng(seed))
    name, page, _ = sample.id.split("/")
    assert max(sample.images[0].size) == LONG_SIDE
    assert sample.answers[0] in sample.ground_truth.options
    text = " ".join(PAGES.library.document(name).page_text(int(page)).split())
    if sample.kind in ("table", "lead", "review", "peak"):
        assert sample.answers[0] in text
    again = PAGES.sample(np.random.default_rng(seed))
    assert again == sample


@given(st.integers(0, 2**32))
def test_a_flag_has_the_colours_asked_for(seed: int) -> None:
    sample = FlagsWorld().sample(np.random.default_rng(seed))
    pixels = sample.images[0].pixels.astype(int)
    assert pixels.shape == (96, 96, 3)
    distance = {
        name: np.abs(pixels - np.array(colour)).max(axis=2) <= 6 for name, colour in COLOURS.items()
    }
    rows = {name: np.flatnonzero(near.any(axis=1)) for name, near in distance.items() if near.any()}
    assert len(rows) == 2
    upper, lower = sorted(rows, key=lambda name: int(rows[name][0]))
    assert rows[upper][-1] < rows[lower][0]
    answer = upper if "upper band" in sample.question else lower
    assert sample.answers == (f"{upper} {lower}" if "bands" in sample.question else answer,)
    assert (len(rows[upper]), len(rows[lower])) == (24, 24)


def test_the_tiny_world_has_three_problems_and_each_answer() -> None:
    world = procedural("tiny")
    samples = [world.sample(np.random.default_rng(seed)) for seed in range(300)]
    assert {sample.kind for sample in samples} == {"rotation180", "dark", "none"}
    answers = {sample.answers[0] for sample in samples}
    assert {answer for answer in answers if " " not in answer} == set(COLOURS)
    assert all(
        len(set(answer.split()) & set(COLOURS)) == answer.count(" ") + 1 for answer in answers
    )
    assert {max(sample.images[0].size) for sample in samples} == {96}


def test_crops_are_of_scenes_too_large_to_be_read_as_shown() -> None:
    sample = procedural(plan={("crop",): 1, ("dark",): 1}).sample(np.random.default_rng(1))
    other = procedural(plan={("crop",): 1, ("dark",): 1}).sample(np.random.default_rng(0))
    by_kind = {each.kind: each for each in (sample, other)}
    assert set(by_kind) == {"crop", "dark"}
    assert by_kind["crop"].images[0].size == (3072, 2304)
    assert max(by_kind["dark"].images[0].size) <= 1120


def test_an_unknown_world_is_named() -> None:
    with pytest.raises(UnknownNameError, match="tiny"):
        procedural("tini")
