"""Tests the degraded scenes, and with outside readers that a network helps in them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv.envs.mags.ground_truth import MagsTruth
from visenv.envs.mags.world import SCENES, MagsWorld
from visenv.envs.mags.world.degrade import Degradation, degrade
from visenv.envs.mags.world.pictograms import PICTOGRAMS
from visenv.envs.mags.world.questions import make_scene
from visenv.envs.mags.world.render import to_native
from visenv.errors import ConfigurationError
from visenv.testing.record import played
from visenv.types import Pixels
from visenv.worlds.scenes import background
from visenv.worlds.scenes.details import Canvas


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def gray(level: int) -> Pixels:
    return np.full((64, 64, 3), level, np.uint8)


def test_picture_without_details_stays_as_it_is() -> None:
    assert (degrade(rng(), gray(120), Degradation(blur=2.0, noise=0.0, jpeg=90)) == 120).all()


def test_kernel_is_gaussian() -> None:
    """Check the weights of a Gaussian of 1 px: 0.399² at a point, and e^-0.5 times that beside."""
    pixels = gray(0)
    pixels[32, 32] = 255
    blurred = degrade(rng(), pixels, Degradation(blur=1.0, noise=0.0, jpeg=100))
    assert abs(int(blurred[32, 32, 1]) - 255 * 0.399**2) < 2.5
    assert abs(int(blurred[32, 33, 1]) - 255 * 0.399**2 * np.exp(-0.5)) < 2.5


def test_noise_has_its_standard_deviation() -> None:
    noisy = degrade(rng(), gray(120), Degradation(blur=0.0, noise=5.0, jpeg=100))
    luminance = noisy.astype(float) @ [0.299, 0.587, 0.114]
    # Three independent channels: 5 * sqrt(0.299² + 0.587² + 0.114²).
    assert abs(luminance.std() - 3.34) < 0.15


def test_signs_are_small_and_have_different_sizes() -> None:
    scenes = SCENES["degraded"]
    signs = [sign for seed in range(20) for sign in make_scene(rng(seed), scenes).signs]
    native = [sign.box.native(scenes.unit) for sign in signs]
    assert {right - left for left, _, right, _ in native} == {18, 21, 24}
    assert {bottom - top for _, top, _, bottom in native} == {18, 21, 24}


@pytest.mark.parametrize(("scenes", "shown"), [("tiny-degraded", 24), ("tiny-clean", 96)])
def test_sign_of_a_tiny_scene_lies_in_a_cell_which_fills_the_enlarged_crop(
    scenes: str, shown: int
) -> None:
    """Check that a cell has 24 native px, or 96 px, the size to which 24 px are enlarged."""
    options: dict[str, Any] = {"preset": "tiny-degraded", "scenes": scenes}
    for magnifier, side in (("none", shown), ("lanczos", 96)):
        env: Any = gym.make("visenv/MagsZoom-v0", magnifier=magnifier, **options)
        for seed in range(4):
            episode = played(env, "oracle", seed)
            (crop,) = episode.turns[1].messages[0].images
            assert crop.size == (side, side)
            (sign,) = env.unwrapped.sample.truth_as(MagsTruth).signs
            (box,) = env.unwrapped.crops()
            assert box[2] - box[0] == box[3] - box[1] == shown
            assert box[0] < sign.box[0] < sign.box[2] < box[2]
            assert box[1] < sign.box[1] < sign.box[3] < box[3]


def test_native_image_is_blurrier_than_the_rendered_one() -> None:
    """Check the range of levels of a panel, which is 95 levels between its ink and its ground."""
    sample, rendered = MagsWorld("degraded").pair(rng(3))
    averaged, native = to_native(rendered), sample.images[0].pixels
    assert averaged.shape == native.shape == (768, 768, 3)
    for sign in sample.truth_as(MagsTruth).signs:
        left, top, right, bottom = (int(edge) for edge in sign.detail_box)
        sharp, blurred = (each[top:bottom, left:right, 1] for each in (averaged, native))
        assert int(sharp.max()) - int(sharp.min()) > 80
        assert np.abs(np.diff(blurred.astype(int))).max() < np.abs(np.diff(sharp.astype(int))).max()


@pytest.mark.parametrize("kind", PICTOGRAMS)
def test_details_differ_and_lie_on_the_panel(kind: str) -> None:
    drawings = []
    for value in PICTOGRAMS[kind].options:
        ink = PICTOGRAMS[kind].draw(rng(), value, Canvas(72, MagsWorld("degraded").scenes.unit, 3))
        assert ink.shape[:2] == (72, 72)
        inked = np.abs(ink[:, :, 0]) > 40
        assert 0.05 < inked.mean() < 0.6
        assert not inked[[0, -1]].any(), value
        assert not inked[:, [0, -1]].any(), value
        drawings.append(inked)
    for place, one in enumerate(drawings):
        for other in drawings[:place]:
            assert (one != other).sum() >= 50  # of 5,184 pixels


@pytest.mark.skipif(
    not all(map(find_spec, ("skimage", "sklearn", "matplotlib"))),
    reason="needs the photographs of the extra test",
)
def test_photographs_are_a_material() -> None:
    painted = background.surface(rng(), "textures", 256, 1.0)
    photograph = background.surface(rng(), "photographs", 256, 1.0)
    assert painted.shape == photograph.shape == (256, 256, 3)
    assert np.array_equal(photograph, background.surface(rng(), "photographs", 256, 1.0))
    assert not np.array_equal(painted, photograph)


def test_photographs_need_all_of_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    background._photographs.cache_clear()
    monkeypatch.setattr(background, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="scikit-image scikit-learn matplotlib"):
        MagsWorld("degraded-photographs").sample(rng())
    background._photographs.cache_clear()


@pytest.mark.slow
@pytest.mark.component("torch")
def test_preset_has_its_own_magnifier_and_an_oracle() -> None:
    pytest.importorskip("torch")
    env: Any = gym.make("visenv/MagsZoom-v0", preset="degraded")
    assert env.unwrapped.preset.magnifier == "small-deblur"
    episode = played(env, "oracle", 1)
    assert episode.reward == pytest.approx(4.2)
    crops = episode.turns[1].messages[0].images
    small: Any = gym.make("visenv/MagsZoom-v0", preset="degraded", magnifier="small")
    assert crops != played(small, "oracle", 1).turns[1].messages[0].images


@pytest.mark.soak
@pytest.mark.component("torch")
def test_network_shows_a_reader_what_interpolation_does_not() -> None:
    """Check the bar of `benchmarks/degraded.py` with fewer scenes: 960 signs, 320 are read."""
    pytest.importorskip("torch")
    from benchmarks import degraded, sign_reader

    training = [*degraded.signs_of("textures", 1, 120)]
    reader = sign_reader.train([sign.clean for sign in training], [s.value for s in training])
    tests = [*degraded.signs_of("textures", 2, 40)]

    def read(name: str) -> float:
        return degraded.share_read(reader, degraded.crops(name, tests), tests)

    others = [read(name) for name in ("none", "resize", "lanczos")]
    assert max(others) <= 0.6
    assert read("small-deblur") >= max(others) + 0.15
