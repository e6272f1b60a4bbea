"""Tests that a simple reader finds the answer in a crop, but not in the view.

The reader knows the place of the panel and is trained: for every answer it stores the mean
feature of 7 to 20 labeled scenes, and for a new scene it returns the nearest mean.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.environments import few
from visenv.envs.zoom_vqa.tools import INPUT_IMAGE, KeypointZoom
from visenv.images import shrink
from visenv.tools import Store
from visenv.types import Image, Pixels, Sample
from visenv.worlds.scenes import KINDS, PRESETS, ScenesWorld
from visenv.worlds.scenes.details import PANEL, Canvas, engrave

Floats = NDArray[np.float64]

TEST = 160
TRAIN = {"colour": 60, "count": 60, "relation": 40, "text": 224}


# ------------------------------------------------------------------------------------- the reader


def color_feature(panel: Floats) -> Floats:
    """Return the third moment of each channel: lines are few and strong, the cover is weak."""
    return np.asarray(np.cbrt((panel**3).mean(axis=(0, 1))))


def count_feature(panel: Floats) -> Floats:
    return np.array([np.abs(panel).mean()])


def shape_feature(panel: Floats) -> Floats:
    """Return the place of ink, dark or light."""
    ink = np.abs(panel).mean(axis=2)
    return np.asarray(cv2.resize(ink, (32, 32), interpolation=cv2.INTER_AREA)).ravel()


FEATURES: dict[str, Callable[[Floats], Floats]] = {
    "colour": color_feature,
    "count": count_feature,
    "relation": shape_feature,
    "text": shape_feature,
}


def accuracy(features: Floats, answers: list[str], trained: int) -> float:
    known, labels = np.unique(answers, return_inverse=True)
    of_class = labels[:trained] == np.arange(len(known))[:, None]
    means = (of_class @ features[:trained]) / of_class.sum(axis=1, keepdims=True)
    distances = ((features[trained:, None] - means) ** 2).sum(axis=2)
    return float((distances.argmin(axis=1) == labels[trained:]).mean())


def cut(image: Pixels, box: Floats) -> Floats:
    left, top, right, bottom = np.round(box).astype(int)
    return image[top:bottom, left:right].astype(float) - PANEL


def seen(sample: Sample, view_side: int) -> tuple[Floats, Floats]:
    """Return the panel of the view, and after one good zoom (400 of 1024 px, as in the paper)."""
    native = sample.images[0]
    scale = view_side / native.size[0]
    view = Image.from_pixels(shrink(native.pixels, (view_side, view_side)))
    tool, store = KeypointZoom(crop_side=view_side * 400 // 1024, source="native"), Store()
    tool.reset(sample, store)
    store.images[INPUT_IMAGE] = view
    left, top, right, bottom = sample.ground_truth.target_box
    keypoint = [int((left + right) / 2 * scale), int((top + bottom) / 2 * scale)]
    result = tool.run({"keypoint": keypoint}, store)
    (crop,), detail = result.parts, result.detail
    assert isinstance(crop, Image)
    panel, window = np.array(sample.ground_truth.detail_box, float), np.array(detail["box"], float)
    enlarged = (panel - np.tile(window[:2], 2)) * crop.size[0] / (window[2] - window[0])
    return cut(view.pixels, panel * scale), cut(crop.pixels, enlarged)


@cache
def measured(kind: str) -> tuple[float, float]:
    """Return the accuracies from view and crop, over `TEST` scenes of 512 px shown at 128."""
    world = ScenesWorld(
        "small", width=512, height=512, view_side=128, kinds=(kind,), signs=(1, 1), clutter=(0, 0)
    )
    count = TRAIN[kind] + TEST
    samples = [world.sample(np.random.default_rng([7, index])) for index in range(count)]
    panels = [seen(sample, 128) for sample in samples]
    answers = [sample.answers[0] for sample in samples]
    views, crops = (np.stack([FEATURES[kind](pair[which]) for pair in panels]) for which in (0, 1))
    return accuracy(views, answers, TRAIN[kind]), accuracy(crops, answers, TRAIN[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", few([*KINDS], 2))
def test_zoom_is_enough_to_read(kind: str) -> None:
    assert measured(kind)[1] >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_view_reveals_no_more_than_chance(kind: str) -> None:
    # Guessing is right with probability p = 1 / options: mean p, standard deviation
    # sqrt(p (1 - p) / 160). A guesser exceeds four deviations above the mean 1 time in 30,000.
    chance = 1 / len(KINDS[kind].options)
    assert measured(kind)[0] <= chance + 4 * np.sqrt(chance * (1 - chance) / TEST)


# ------------------------------------------------------------------------- the cause: equal means


UNITS = sorted({preset.unit for preset in PRESETS.values()})


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_view_pixels_of_every_answer_are_the_panels_gray(kind: str, unit: Fraction) -> None:
    canvas = Canvas(int(24 * unit), unit, stripe_period=1 if unit == 12 else 3)
    rng = np.random.default_rng(0)
    for answer in KINDS[kind].options:
        ink = KINDS[kind].draw(rng, answer, canvas)
        panel = np.broadcast_to(engrave(rng, ink, unit, 1.0), (canvas.side, canvas.side, 3))
        # Rounding has an error of at most 0.5 (standard deviation) in a native pixel, and 0.17 in
        # the mean of at least 9 independent ones; 20,000 pixels stay within 5 deviations, 0.85.
        view = cv2.resize(panel.astype(np.float32), (24, 24), interpolation=cv2.INTER_AREA)
        assert np.abs(view - PANEL).max() < 0.85, answer
        assert panel.std() > 8, answer


def test_stripes_worked_by_hand() -> None:
    # Period 12 native px, a third of it stripe: 4 px of 246 or 26, and 8 px that compensate them.
    # Red channel of red: 246 - 110 = 136 up, 136 * 4 / 8 = 68 down: 110 - 68 = 42.
    # Its green channel: 110 - 26 = 84 down, 84 * 4 / 8 = 42 up: 110 + 42 = 152.
    # Means: (4 * 246 + 8 * 42) / 12 = 110, (4 * 26 + 8 * 152) / 12 = 110.
    canvas = Canvas(96, Fraction(12), stripe_period=1)
    rng = np.random.default_rng(0)
    panel = engrave(rng, KINDS["colour"].draw(rng, "red", canvas), Fraction(12), 1.0).astype(int)
    if np.ptp(panel[0, :12], axis=0).max() <= 1:
        panel = panel.swapaxes(0, 1)
    period = [[42, 152, 152]] * 4 + [[246, 26, 26]] * 4 + [[42, 152, 152]] * 4
    # Float32 errors may round an integral level to its neighbor.
    np.testing.assert_allclose(panel, np.broadcast_to(period * 8, panel.shape), atol=1)
    assert np.mean(panel == np.array(period * 8)) > 0.999


def test_view_would_show_the_detail_without_hiding() -> None:
    canvas = Canvas(96, Fraction(4), stripe_period=3)
    ink = KINDS["text"].draw(np.random.default_rng(0), "EXIT", canvas)
    view = cv2.resize(ink[:, :, 0], (24, 24), interpolation=cv2.INTER_AREA)
    assert view.std() > 20
