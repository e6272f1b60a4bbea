"""Tests that the answer is legible after the reference repair, and not before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from visenv.envs.arft.coding.ground_truth import CodingTruth, Distortion
from visenv.envs.arft.coding.repairs import repaired
from visenv.envs.arft.coding.world import Problems, kinds
from visenv.envs.arft.coding.world.canvas import TextBox
from visenv.envs.arft.coding.world.kinds import MILD
from visenv.envs.arft.coding.world.legibility import (
    UNREADABLE,
    part_around,
    share_as_repaired,
    share_as_shown,
    share_legible,
)
from visenv.envs.arft.coding.world.plans import COMPOSITIONS, CROP, NONE, SINGLES, named
from visenv.envs.arft.coding.world.questions import TextPictures, procedural
from visenv.types import Pixels, Sample

WORLD = procedural()
COUNT = 2
"""Number of samples of each kind; docs/arft.md has the rates over more samples."""
FIRST: Sequence[Problems] = (*SINGLES, CROP, COMPOSITIONS[0])
OTHERS: Sequence[Problems] = (
    *COMPOSITIONS[1:],
    ("rotation180", "blur"),
    ("rotation90", "noise"),
)
CASES = [*FIRST, *(pytest.param(problems, marks=pytest.mark.soak) for problems in OTHERS)]


@pytest.mark.slow
@pytest.mark.parametrize("problems", CASES, ids=named)
def test_share_of_legible_answers_rises_by_50_points_or_more(problems: Problems) -> None:
    before = after = 0
    for seed in range(COUNT):
        clean, sample = WORLD.made(problems, np.random.default_rng([11, seed]))
        made = sample.truth_as(CodingTruth).distortions
        pixels = sample.images[0].pixels
        assert sample.answers == clean.answers
        shown = share_as_shown(WORLD.pictures, clean, pixels, made)
        assert problems == NONE or shown <= UNREADABLE
        before += shown == 1
        after += share_as_repaired(WORLD.pictures, clean, pixels, made, problems) == 1
    assert after / COUNT >= 0.9
    assert before == (COUNT if problems == NONE else 0)
    assert problems == NONE or (after - before) / COUNT >= 0.5


@pytest.mark.parametrize("name", ["dark", "overexposure", "noise"])
def test_mildest_distortions_leave_the_answer_readable(name: str) -> None:
    """Check that the measure is not always 0; otherwise, the test above would always pass."""
    pictures, rng = TextPictures(), np.random.default_rng(5)
    clean = pictures.draw(rng, pictures.write(rng), False)
    made = [kinds.draw(name, rng, MILD[name], 0.0)]
    pixels = kinds.apply_all(clean.images[0].pixels, made)
    assert share_as_shown(pictures, clean, pixels, made) == 1


def drawn(seed: int) -> Sample:
    pictures, rng = TextPictures(), np.random.default_rng(seed)
    return pictures.draw(rng, pictures.write(rng), False)


def test_overexposure_is_repaired_without_graying_the_paper() -> None:
    made = [Distortion(name="overexposure", gain=3.0)]
    paper = np.full((8, 8, 3), 220, np.uint8)
    paper[2, 2] = 60  # 3·60 = 180, and back; 3·220 = 660 is clipped to 255, and stays white
    restored = repaired(kinds.apply_all(paper, made), made)
    assert restored[2, 2].tolist() == [60, 60, 60]
    assert np.delete(restored.reshape(-1, 3), 18, axis=0).min() == 255


def test_blur_is_undone_in_part() -> None:
    # The filter restores less of other layouts, for example 11 % of the error on a board.
    sample = next(each for each in map(drawn, range(50)) if each.kind == "page")
    made = [Distortion(name="blur", kernel=15, sigma=2.6)]
    left, top, right, bottom = sample.ground_truth.target_box
    clean = sample.images[0].pixels[top - 90 : bottom + 90, left - 90 : right + 90]
    blurred = kinds.apply_all(clean, made)
    errors = [
        np.abs(pixels[64:-64, 64:-64].astype(int) - clean[64:-64, 64:-64]).mean()
        for pixels in (blurred, repaired(blurred, made))
    ]
    assert errors[1] < 0.75 * errors[0]


def test_blur_is_filtered_like_the_picture_with_its_reflections() -> None:
    """Compare with the Wiener filter of the Fourier transform of the doubled picture."""
    pixels = np.random.default_rng(0).integers(60, 200, (24, 36, 3), np.uint8)
    weights = np.exp(-(np.arange(-4.0, 5) ** 2) / (2 * 1.7**2))
    down, across = (np.abs(np.fft.fft(weights / weights.sum(), 2 * side)) for side in (24, 36))
    blur = np.outer(down, across)[:, :, None]
    power = (3.0 / 1.7 / 200) ** 2  # of the repair: the error of rounding, divided by the signal's
    doubled = np.concatenate([pixels, pixels[::-1]])
    doubled = np.concatenate([doubled, doubled[:, ::-1]], axis=1).astype(float)
    spectrum = np.fft.fft2(doubled, axes=(0, 1)) * blur / (blur**2 + power)
    expected = np.fft.ifft2(spectrum, axes=(0, 1)).real[:24, :36].clip(0, 255)
    made = [Distortion(name="blur", kernel=9, sigma=1.7)]
    assert np.abs(repaired(pixels, made) - expected).max() < 0.6  # half a level is rounding
    assert repaired(pixels[:23, :35], made).shape == (23, 35, 3), "odd sizes are kept"


@pytest.mark.parametrize(
    "distortion",
    [
        Distortion(name="rotation90", clockwise=True),
        Distortion(name="rotation90", clockwise=False),
        Distortion(name="rotation180"),
    ],
)
def test_place_moves_with_its_pixels(distortion: Distortion) -> None:
    pixels = np.zeros((5, 7, 3), np.uint8)
    pixels[1:3, 2:6] = 9
    turned = kinds.apply(pixels, distortion)
    place = kinds.moved(TextBox(2, 1, 6, 3), (7, 5), [distortion])
    rows, columns, _ = np.nonzero(turned)
    assert place == (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)


@pytest.mark.parametrize("names", [("rotation90",), ("rotation180",), ("rotation90", "dark")])
def test_part_around_a_place_is_cut_out_of_the_distorted_picture(names: Problems) -> None:
    sample = drawn(3)
    clean, size = sample.images[0].pixels, sample.images[0].size
    made = [kinds.draw(name, np.random.default_rng(0), MILD.get(name), 0.0) for name in names]
    place = TextBox(100, 900, 180, 950)  # near two edges of the picture
    part, inner = part_around(kinds.apply_all(clean, made), place, size, made)
    # 100 px to the left edge, 320 px upwards, 330 px to the lower edge
    assert inner == (100, 320, 180, 370)
    restored = repaired(part, made)
    assert restored.shape == (690, 500, 3)
    error = np.abs(restored[320:370, 100:180].astype(int) - clean[900:950, 100:180])
    assert error.max() <= 2, "half a level, divided by the gain of 0.40, rounded"


@pytest.mark.slow
def test_problems_that_no_repair_undoes_are_named() -> None:
    from visenv.errors import DataError

    with pytest.raises(DataError, match="blur makes unreadable"):
        procedural("tiny").made(("blur",), np.random.default_rng(0))


@pytest.mark.slow
def test_size_and_question_do_not_depend_on_the_problem() -> None:
    """Check question and size, from which a text-only model must not learn the problem."""
    for seed in range(2):
        made = [
            WORLD.made(problems, np.random.default_rng(seed))[1]
            for problems in (("rotation90",), ("dark",), ("overexposure",), NONE, CROP)
        ]
        assert len({sample.question for sample in made}) == 1
        assert {sample.images[0].size for sample in made} == {(1280, 1280)}
        assert len({sample.truth_as(CodingTruth).options for sample in made}) == 1


def drawn_line(text: str, height: int, ground: int = 220, ink: int = 60) -> Pixels:
    from PIL import Image, ImageDraw

    from visenv.envs.arft.coding.world.canvas import width, write

    size = width(text, height) + 2 * height, 2 * height
    image = Image.new("RGB", size, (ground,) * 3)
    write(ImageDraw.Draw(image), (height, height // 2), text, height, (ink,) * 3)
    return np.asarray(image)


@pytest.mark.parametrize(("height", "text"), [(20, "HARBOR 4817"), (9, "NORA BERG"), (30, "KT372")])
def test_written_line_is_legible(height: int, text: str) -> None:
    line = drawn_line(text, height)
    assert share_legible(line, text, height, [1]) == 1
    assert share_legible(255 - line, text, height, [1]) == 1, "light ink on dark ground"
    assert share_legible(np.rot90(line, 2), text, height, [1]) < 0.5
    assert share_legible(np.full_like(line, 220), text, height, [1]) == 0


@pytest.mark.parametrize(("ink", "share"), [(180, 1.0), (200, 0.0)])
def test_ink_must_differ_from_its_ground(ink: int, share: float) -> None:
    """Check both sides of the limit of 24 levels: 220 - 180 = 40 and 220 - 200 = 20."""
    assert share_legible(drawn_line("HARBOR", 20, ink=ink), "HARBOR", 20, [1]) == share


@pytest.mark.parametrize(("capital", "ratio"), [(6, 3.0), (5, 1.7), (5, 4.4), (11, 1.25)])
def test_line_is_found_in_an_enlarged_part(capital: int, ratio: float) -> None:
    from visenv.opencv import cv2

    line = drawn_line("PIER 3817", capital)
    canvas = np.full((120, 160, 3), 220, np.uint8)
    canvas[60 : 60 + line.shape[0], 40 : 40 + line.shape[1]] = line
    large = np.asarray(cv2.resize(canvas, None, fx=ratio, fy=ratio), np.uint8)
    assert share_legible(large, "PIER 3817", capital, [1, 0.5], search=True) == 1
    assert share_legible(large, "MILL 5274", capital, [1, 0.5], search=True) < 0.5
    assert share_legible(large, "PIER 3817", capital, [1, 0.5]) < 0.5


def test_letters_of_four_pixels_are_too_small() -> None:
    assert share_legible(drawn_line("PIER 3817", 4), "PIER 3817", 4, [1]) == 0
    assert share_legible(drawn_line("PIER 3817", 20), "PIER 3817", 20, [0.2]) == 0


def test_points_and_colons_are_not_compared() -> None:
    line = drawn_line("12.50", 20)
    assert share_legible(line, "12.50", 20, [1]) == 1
    left = np.flatnonzero((line < 150).any(axis=(0, 2)))
    gaps = np.flatnonzero(np.diff(left) > 1)
    point = left[gaps[1] + 1], left[gaps[2]]  # the third group of columns with ink
    assert point[1] - point[0] < 8
    line = line.copy()
    line[:, point[0] : point[1] + 1] = 220
    assert share_legible(line, "12.50", 20, [1]) == 1
    assert share_legible(drawn_line("1042", 20), "10:42", 20, [1]) < 1, "its gap is missing"


def test_line_of_other_letters_is_not_legible() -> None:
    assert share_legible(drawn_line("PARK 4190", 20), "MILL 5274", 20, [1]) < 0.5
