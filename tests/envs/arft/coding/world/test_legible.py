"""Tests that a reader finds the gold answer after the reference repair, and not before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from visenv.envs.arft.coding.ground_truth import CodingTruth, Distortion
from visenv.envs.arft.coding.repairs import repaired
from visenv.envs.arft.coding.world import PLANS, Problems, kinds
from visenv.envs.arft.coding.world.legible import UNREADABLE, share_as_repaired, share_as_shown
from visenv.envs.arft.coding.world.lettering import TextBox
from visenv.envs.arft.coding.world.plans import CROP, NONE, named
from visenv.envs.arft.coding.world.questions import NoticePictures, procedural
from visenv.envs.arft.coding.world.reader import read
from visenv.types import Sample

WORLD = procedural()
COUNT = 4
"""Number of samples of each kind; docs/arft.md has the rates over more samples."""
OTHERS: Sequence[Problems] = (("rotation180", "blur"), ("rotation90", "noise"), ("dark", "blur"))


@pytest.mark.slow
@pytest.mark.parametrize("problems", [*PLANS["train"], *OTHERS], ids=named)
def test_read_rate_rises_by_50_points_or_more(problems: Problems) -> None:
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
    """Check that the reader can read at all; otherwise, the test above would always pass."""
    pictures, rng = NoticePictures(), np.random.default_rng(5)
    clean = pictures.draw(rng, pictures.write(rng), False)
    made = [kinds.draw(name, rng, 0.0)]
    pixels = kinds.apply_all(clean.images[0].pixels, made)
    assert share_as_shown(pictures, clean, pixels, made) == 1


def drawn(seed: int) -> Sample:
    pictures, rng = NoticePictures(), np.random.default_rng(seed)
    return pictures.draw(rng, pictures.write(rng), False)


def test_overexposure_is_repaired_without_graying_the_paper() -> None:
    made = [Distortion(name="overexposure", gain=3.0)]
    paper = np.full((8, 8, 3), 220, np.uint8)
    paper[2, 2] = 60  # 3·60 = 180, and back; 3·220 = 660 is clipped to 255, and stays white
    restored = repaired(kinds.apply_all(paper, made), made)
    assert restored[2, 2].tolist() == [60, 60, 60]
    assert np.delete(restored.reshape(-1, 3), 18, axis=0).min() == 255


def test_blur_is_undone_in_part() -> None:
    sample, made = drawn(3), [Distortion(name="blur", kernel=15, sigma=2.6)]
    left, top, right, bottom = sample.ground_truth.target_box
    clean = sample.images[0].pixels[top - 90 : bottom + 90, left - 90 : right + 90]
    blurred = kinds.apply_all(clean, made)
    errors = [
        np.abs(pixels[64:-64, 64:-64].astype(int) - clean[64:-64, 64:-64]).mean()
        for pixels in (blurred, repaired(blurred, made))
    ]
    assert errors[1] < 0.75 * errors[0]


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


@pytest.mark.parametrize(("height", "text"), [(20, "HARBOR 4817"), (9, "NORA BERG"), (30, "K7X")])
def test_reader_reads_what_was_written(height: int, text: str) -> None:
    from PIL import Image, ImageDraw

    from visenv.envs.arft.coding.world.lettering import width, write

    image = Image.new("RGB", (width(text, height) + 2 * height, 2 * height), (220,) * 3)
    write(ImageDraw.Draw(image), (height, height // 2), text, height, (60, 60, 60))
    assert read(np.asarray(image)) == text.replace(" ", "")
