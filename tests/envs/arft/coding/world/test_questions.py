"""Tests the questions of the procedural worlds: the answers are in the image, read or computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arft.coding.world.flags import FlagPictures
from visenv.envs.arft.coding.world.lettering import TextBox
from visenv.envs.arft.coding.world.pictures import EDGE, SIDE
from visenv.envs.arft.coding.world.questions import NoticePictures, procedural
from visenv.envs.arft.world.tiny_images import COLORS
from visenv.errors import UnknownNameError


@pytest.mark.slow
@pytest.mark.parametrize("small", [False, True])
def test_picture_is_square_and_its_answer_stands_at_its_place(small: bool) -> None:
    pictures = NoticePictures()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sample = pictures.draw(rng, pictures.write(rng), small)
        assert sample.images[0].size == (SIDE, SIDE)
        assert sample.answers[0] in sample.ground_truth.options
        assert len(set(sample.ground_truth.options)) == 4
        place = TextBox(*sample.ground_truth.target_box)
        assert min(place.left, place.top) >= EDGE
        assert max(place.right, place.bottom) <= SIDE - EDGE
        read = pictures.share_read(sample, sample.images[0].pixels, place, native=True)
        assert small or read == 1
        again = np.random.default_rng(seed)
        assert pictures.draw(again, pictures.write(again), small) == sample


@given(st.integers(0, 2**32))
def test_flag_has_the_colors_asked_for(seed: int) -> None:
    flags, rng = FlagPictures(), np.random.default_rng(seed)
    sample = flags.draw(rng, flags.write(rng))
    pixels = sample.images[0].pixels.astype(int)
    assert pixels.shape == (96, 96, 3)
    distance = {
        name: np.abs(pixels - np.array(color)).max(axis=2) <= 6 for name, color in COLORS.items()
    }
    rows = {name: np.flatnonzero(near.any(axis=1)) for name, near in distance.items() if near.any()}
    assert len(rows) == 2
    upper, lower = sorted(rows, key=lambda name: int(rows[name][0]))
    assert rows[upper][-1] < rows[lower][0]
    answer = upper if "upper band" in sample.question else lower
    assert sample.answers == (f"{upper} {lower}" if "bands" in sample.question else answer,)
    assert (len(rows[upper]), len(rows[lower])) == (24, 24)


@pytest.mark.slow
def test_tiny_world_has_three_problems_and_each_answer() -> None:
    world = procedural("tiny")
    samples = [world.sample(np.random.default_rng(seed)) for seed in range(300)]
    assert {sample.kind for sample in samples} == {"rotation180", "dark", "none"}
    answers = {sample.answers[0] for sample in samples}
    assert {answer for answer in answers if " " not in answer} == set(COLORS)
    assert all(
        len(set(answer.split()) & set(COLORS)) == answer.count(" ") + 1 for answer in answers
    )
    assert {max(sample.images[0].size) for sample in samples} == {96}


def test_group_shares_one_sample() -> None:
    worlds = procedural("tiny"), procedural("tiny")
    first, second = (world.sample(np.random.default_rng(4)) for world in worlds)
    assert first is second


def test_unknown_world_is_named() -> None:
    with pytest.raises(UnknownNameError, match="tiny"):
        procedural("tini")
