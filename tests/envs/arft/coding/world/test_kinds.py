"""Tests the distortions: pixels by hand, exact inverses, ranges of parameters, determinism."""

from __future__ import annotations

import json
from dataclasses import replace
from math import erf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from visenv.envs.arft.coding.ground_truth import Distortion
from visenv.envs.arft.coding.world import KINDS, LABELS, apply
from visenv.envs.arft.coding.world.kinds import CALIBRATED, MILD, WHOLE, StrengthRange, draw
from visenv.errors import DataError
from visenv.types import Pixels

IMAGES = arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3)))


def gray(*rows: list[int]) -> Pixels:
    return np.repeat(np.array(rows, np.uint8)[:, :, None], 3, axis=2)


def test_labels_are_the_papers() -> None:
    paper = "rotation90 rotation180 dark overexposure blur noise crop none"
    assert " ".join(LABELS) == paper


@pytest.mark.parametrize(
    ("distortion", "expected"),
    [
        (Distortion(name="rotation90", clockwise=True), gray([4, 1], [5, 2], [6, 3])),
        (Distortion(name="rotation90", clockwise=False), gray([3, 6], [2, 5], [1, 4])),
        (Distortion(name="rotation180"), gray([6, 5, 4], [3, 2, 1])),
        # 0.4·(1 … 6) = 0.4, 0.8, 1.2, 1.6, 2.0, 2.4
        (Distortion(name="dark", gain=0.4), gray([0, 1, 1], [2, 2, 2])),
        # 60·(1 … 6) = 60, 120, 180, 240, 300, 360, the last two clipped
        (Distortion(name="overexposure", gain=60), gray([60, 120, 180], [240, 255, 255])),
    ],
)
def test_small_images_by_hand(distortion: Distortion, expected: Pixels) -> None:
    image = gray([1, 2, 3], [4, 5, 6])
    assert (apply(image, distortion) == expected).all()
    assert (image == gray([1, 2, 3], [4, 5, 6])).all(), "what is given is not changed"


def test_blur_spreads_a_point_and_keeps_its_light() -> None:
    image = gray(*[[0] * 31] * 31)
    image[15, 15] = 255
    blurred = apply(image, Distortion(name="blur", kernel=9, sigma=1.7)).astype(int)
    # a Gaussian of sigma 1.7 has 1 / (2·pi·1.7²) = 0.0551 of its mass on the center pixel
    assert blurred[15, 15, 0] == pytest.approx(255 / (2 * np.pi * 1.7**2), abs=1)
    assert (blurred[:11] == 0).all(), "a kernel of 9 reaches 4 px"
    assert (blurred[15, 11:20] > 0).all()


def test_large_blur_has_the_weights_of_a_gaussian() -> None:
    """Check a step of 255 levels, whose blur is the sum of the weights on one side."""
    image = np.zeros((1, 301, 3), np.uint8)
    image[:, 150:] = 255
    blurred = apply(image, Distortion(name="blur", kernel=79, sigma=12.2))[0, :, 0]
    sums = [erf((place - 149.5) / (12.2 * 2**0.5)) for place in range(120, 180)]
    assert blurred[120:180] == pytest.approx([127.5 * (1 + each) for each in sums], abs=0.8)


def test_noise_has_its_deviation_and_its_seed() -> None:
    image = np.full((100, 100, 3), 128, np.uint8)
    noisy = apply(image, Distortion(name="noise", sigma=30.0, seed=7)).astype(float)
    # 30,000 draws: the standard error of their mean is 30/173 = 0.17, of their deviation about 0.12
    assert noisy.mean() == pytest.approx(128, abs=1)
    assert noisy.std() == pytest.approx(30, abs=1)
    other = apply(image, Distortion(name="noise", sigma=30.0, seed=8))
    assert (other != noisy).mean() > 0.9


def test_veil_divides_the_distance_to_white() -> None:
    # 255 - 200/80 = 252.5, rounded to 252; 255 - 35/80 = 254.6, rounded to 255
    image = gray([55, 220, 255])
    assert (apply(image, Distortion(name="overexposure", veil=80)) == gray([252, 255, 255])).all()


def test_noise_of_a_density_makes_pixels_black_and_white() -> None:
    image = np.full((200, 200, 3), 128, np.uint8)
    noisy = apply(image, Distortion(name="noise", density=0.6, seed=7))
    shares = [(noisy == level).all(axis=2).mean() for level in (0, 128, 255)]
    # 40,000 pixels: the standard error of a share is at most 0.0025
    assert shares == pytest.approx([0.3, 0.4, 0.3], abs=0.015)
    assert sum(shares) == pytest.approx(1)


ALL_RANGES = [
    (name, strength)
    for strengths in (MILD, WHOLE, *CALIBRATED.values())
    for name, strength in strengths.items()
]
TURNS = [("rotation90", None), ("rotation180", None)]


@pytest.mark.parametrize(("name", "strength"), [*ALL_RANGES, *TURNS])
@given(share=st.floats(0, 1))
def test_parameters_are_json_and_in_range(
    name: str, strength: StrengthRange | None, share: float
) -> None:
    distortion = draw(name, np.random.default_rng(0), strength, share)
    drawn = distortion.as_row()
    assert Distortion(**json.loads(json.dumps(drawn))) == distortion
    assert drawn["name"] == name
    if strength is not None:
        low, high = sorted(strength[1:])
        assert low <= drawn[strength.parameter] <= high
    if name == "blur":
        assert drawn["kernel"] % 2 == 1
        # OpenCV's formula if only the kernel size is given
        side = drawn["kernel"]
        assert drawn["sigma"] == pytest.approx(0.3 * ((side - 1) * 0.5 - 1) + 0.8)


def test_share_is_a_point_of_the_range_in_equal_ratios() -> None:
    rng = np.random.default_rng(0)
    # 0.40 · (0.10 / 0.40) ** 0.5 = 0.2; 9 · (25 / 9) ** 0.5 = 15
    assert draw("dark", rng, StrengthRange("gain", 0.4, 0.1), 0.5).gain == 0.2
    assert draw("blur", rng, StrengthRange("kernel", 9, 25), 0.5).kernel == 15
    ends = StrengthRange("veil", 70, 95)
    assert [draw("overexposure", rng, ends, end).veil for end in (0.0, 1.0)] == [70, 95]


@pytest.mark.parametrize("name", KINDS)
@given(image=IMAGES, seed=st.integers(0, 2**32))
def test_parameters_determine_the_pixels(name: str, image: Pixels, seed: int) -> None:
    distortion = draw(name, np.random.default_rng(seed), WHOLE.get(name), 0.3)
    once = apply(image, distortion)
    assert (apply(image, Distortion(**json.loads(json.dumps(distortion.as_row())))) == once).all()
    assert once.dtype == np.uint8
    turned = name == "rotation90"
    assert once.shape == ((image.shape[1], image.shape[0], 3) if turned else image.shape)


@given(image=IMAGES, seed=st.integers(0, 2**32))
def test_distortion_with_an_inverse_is_undone_by_it(image: Pixels, seed: int) -> None:
    rng = np.random.default_rng(seed)
    turn = draw("rotation90", rng, None, 0)
    back = replace(turn, clockwise=not turn.clockwise)
    assert (apply(apply(image, turn), back) == image).all()
    half = draw("rotation180", rng, None, 0)
    assert (apply(apply(image, half), half) == image).all()
    dark = draw("dark", rng, MILD["dark"], 0.3)
    gain = dark.as_row()["gain"]
    restored = apply(apply(image, dark), Distortion(name="overexposure", gain=1 / gain))
    error = np.abs(restored.astype(int) - image)
    assert error.max(initial=0) <= 0.5 / gain + 0.5, "half a level, made larger, rounded"


@pytest.mark.parametrize(
    ("distortion", "says"), [(Distortion(name="sepia"), "sepia"), (Distortion(name="dark"), "gain")]
)
def test_unknown_distortion_is_a_data_error(distortion: Distortion, says: str) -> None:
    with pytest.raises(DataError, match=says):
        apply(gray([1]), distortion)
