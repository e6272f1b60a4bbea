"""Tests both spaces: their members, their samples, and batches by Gymnasium."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from visenv.spaces import RgbImage, Unicode, observation_space


@given(st.text())
def test_unicode_contains_any_text(text: str) -> None:
    assert Unicode().contains(text)


@pytest.mark.parametrize("other", [b"bytes", None, 3, ["a"], np.array("a")])
def test_unicode_contains_nothing_else(other: Any) -> None:
    assert not Unicode().contains(other)


@pytest.mark.parametrize(
    "other",
    [
        np.zeros((2, 2), np.uint8),
        np.zeros((2, 2, 4), np.uint8),
        np.zeros((0, 2, 3), np.uint8),
        np.zeros((2, 2, 3), np.float32),
        [[[0, 0, 0]]],
        None,
    ],
)
def test_rgb_image_refuses_other_values(other: Any) -> None:
    assert not RgbImage().contains(other)


def test_rgb_images_have_any_size() -> None:
    for height, width in ((1, 1), (7, 300), (512, 3)):
        assert RgbImage().contains(np.zeros((height, width, 3), np.uint8))


@pytest.mark.parametrize("space", [Unicode(), RgbImage()])
def test_samples_belong_and_repeat_with_the_seed(space: Any) -> None:
    space.seed(3)
    first = [space.sample() for _ in range(20)]
    space.seed(3)
    second = [space.sample() for _ in range(20)]
    assert all(space.contains(each) for each in first)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert any(not np.array_equal(first[0], other) for other in first[1:])


def test_samples_respect_their_bounds() -> None:
    text, image = Unicode(sample_length=4, seed=0), RgbImage(sample_side=3, seed=0)
    assert {len(text.sample()) for _ in range(200)} == {0, 1, 2, 3, 4}
    assert {image.sample().shape[0] for _ in range(200)} == {1, 2, 3}


@pytest.mark.parametrize("space", [Unicode(seed=0), RgbImage(seed=0)])
def test_samples_survive_json(space: Any) -> None:
    drawn = [space.sample() for _ in range(5)]
    back = space.from_jsonable(json.loads(json.dumps(space.to_jsonable(drawn))))
    assert all(np.array_equal(a, b) for a, b in zip(drawn, back, strict=True))


def test_equality_is_by_kind_and_bounds() -> None:
    assert Unicode() == Unicode()
    assert Unicode() != Unicode(sample_length=3)
    assert RgbImage() == RgbImage()
    assert RgbImage() != RgbImage(sample_side=3)
    assert Unicode() != RgbImage()


def test_observation_space_batches_and_pickles() -> None:
    space = observation_space()
    assert pickle.loads(pickle.dumps(space)) == space
    batched = batch_space(space, 3)
    image = np.zeros((2, 5, 3), np.uint8)
    assert batched.contains({"text": ("a", "", "é"), "images": ((), (image,), (image, image))})
    assert not batched.contains({"text": ("a", "b"), "images": ((), ())})


def test_spaces_have_no_flat_form() -> None:
    assert not Unicode().is_np_flattenable
    assert not RgbImage().is_np_flattenable
    assert repr(Unicode()) == "Unicode()"
    assert repr(RgbImage()) == "RgbImage()"
