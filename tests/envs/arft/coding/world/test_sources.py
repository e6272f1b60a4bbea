"""Tests distorted samples: their stored parameters reproduce the image, for any questions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arft.coding.ground_truth import CodingTruth
from visenv.envs.arft.coding.world import (
    PLANS,
    DistortedRows,
    DistortedWorld,
    Problems,
    apply,
    distorted,
    split_of,
)
from visenv.envs.arft.coding.world.flags import FlagPictures
from visenv.envs.arft.coding.world.plans import CROP, Plan, named
from visenv.envs.arft.coding.world.questions import procedural
from visenv.errors import ConfigurationError, DataError
from visenv.types import Image, QuestionTruth, Sample


def clean(name: str = "q", **truth: Any) -> Sample:
    """Return a sample with a gradient of 40 by 20 px."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[..., 0] = np.linspace(40, 200, 40, dtype=np.uint8)
    pixels[..., 1] = np.linspace(40, 200, 20, dtype=np.uint8)[:, None]
    return Sample(
        name, "Which?", (Image.from_pixels(pixels),), ("yes",), "text", QuestionTruth(**truth)
    )


FLAGS = FlagPictures(), FlagPictures(held_out=True)
BOXED = clean(target_box=(10, 5, 20, 15))
PROBLEMS = st.sampled_from(list(PLANS["train"]))


@given(PROBLEMS, st.integers(0, 2**32))
def test_stored_parameters_make_the_image_again(problems: Problems, seed: int) -> None:
    sample = distorted(BOXED, problems, np.random.default_rng(seed))
    truth = sample.truth_as(CodingTruth)
    pixels = BOXED.images[0].pixels
    for distortion in truth.distortions:
        pixels = apply(pixels, distortion)
    assert (sample.images[0].pixels == pixels).all()
    assert [each.name for each in truth.distortions] == [
        name for name in problems if name not in ("crop", "none")
    ]
    assert truth.problems == problems
    assert truth.split == truth.labels["split"] == split_of(problems)
    assert truth.labels["problem"] == sample.kind == named(problems)
    assert truth.steps == (
        ("problem", "answer") if problems == ("none",) else ("problem", "code", "answer")
    )
    assert (sample.question, sample.answers) == (BOXED.question, BOXED.answers)
    assert sample.id == f"q/{named(problems)}"
    assert sample == distorted(BOXED, problems, np.random.default_rng(seed))


def test_crop_gives_the_region_in_thousandths() -> None:
    sample = distorted(BOXED, ("crop",), np.random.default_rng(0))
    # 10..20 of 40 px, and half of the width more on each side: 5..25, of 40 px 125..625; 5..15 of
    # 20 px, and half of the height more: 0..20, of 20 px 0..1000
    assert sample.ground_truth.box == (125, 0, 625, 1000)
    assert sample.images == BOXED.images
    edge = clean(target_box=(0, 0, 40, 4))
    # the box ends at the border of the image: 0..6 of 20 px
    assert distorted(edge, ("crop",), np.random.default_rng(0)).ground_truth.box == (
        0,
        0,
        1000,
        300,
    )


def test_options_go_along_and_pixels_of_the_clean_image_do_not() -> None:
    given = clean(options=("a", "b"), detail_box=(1, 1, 2, 2))
    truth = distorted(given, ("dark",), np.random.default_rng(0)).truth_as(CodingTruth)
    assert truth.options == ("a", "b")
    assert truth.detail_box is None
    assert truth.box is None


@pytest.mark.parametrize(
    ("sample", "problems", "says"),
    [
        (Sample("q", "?"), ("dark",), "0 images"),
        (clean(), ("crop",), "target_box"),
    ],
)
def test_sample_that_does_not_fit_is_a_data_error(
    sample: Sample, problems: Problems, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        distorted(sample, problems, np.random.default_rng(0))


# ---------------------------------------------------------------------------- worlds and rows


@pytest.mark.slow
def test_world_draws_by_its_plan() -> None:
    world = DistortedWorld(*FLAGS, {("dark",): 3, ("rotation180",): 1})
    drawn = Counter(world.sample(np.random.default_rng(seed)).kind for seed in range(200))
    assert set(drawn) == {"dark", "rotation180"}
    # 3 of 4 on average: 150 ± 4·6.1
    assert drawn["dark"] == pytest.approx(150, abs=25)


def test_world_without_crops_draws_none() -> None:
    world = DistortedWorld(*FLAGS, {("crop",): 5, ("none",): 1})
    assert {world.sample(np.random.default_rng(seed)).kind for seed in range(20)} == {"none"}
    with pytest.raises(ConfigurationError, match="other than crops"):
        DistortedWorld(*FLAGS, {("crop",): 1})
    with pytest.raises(ConfigurationError, match="at least one"):
        DistortedRows([clean()], {})


def test_rows_are_distorted_by_seed_place_and_id() -> None:
    rows = [clean(f"row-{place}") for place in range(60)]
    source = DistortedRows(rows, seed=1)
    assert len(source) == 60
    samples = [source[place] for place in range(60)]
    assert samples == [DistortedRows(rows, seed=1)[place] for place in range(60)]
    assert samples != [DistortedRows(rows, seed=2)[place] for place in range(60)]
    assert "crop" not in {sample.kind for sample in samples}
    longer = DistortedRows([*rows, clean("another")], seed=1)
    assert samples == [longer[place] for place in range(60)], "a new row changes none before it"


def test_rows_with_a_box_are_cropped_too() -> None:
    plan: Plan = {("crop",): 1, ("dark",): 1}
    boxed = [BOXED] * 10
    assert Counter(DistortedRows(boxed, plan)[place].kind for place in range(10)) == {
        "crop": 5,
        "dark": 5,
    }
    assert {DistortedRows([clean()] * 10, plan)[place].kind for place in range(10)} == {"dark"}
    crops: Plan = {("crop",): 1}
    assert DistortedRows(boxed, crops)[0].kind == "crop"
    with pytest.raises(DataError, match="target_box"):
        DistortedRows([clean()], crops)[0]


def test_plan_is_gone_through_again() -> None:
    rows = DistortedRows([clean(f"{place}") for place in range(24)], {("dark",): 1, ("blur",): 1})
    kinds = [rows[place].kind for place in range(24)]
    assert kinds == kinds[:2] * 12


@pytest.mark.slow
def test_procedural_crops_are_found_whatever_the_text_is() -> None:
    world = procedural()
    for seed in range(40):  # one text in ten has a value that is unreadable in small letters
        whole, cut = world.made(CROP, np.random.default_rng([5, seed]))
        assert (whole.question, whole.answers) == (cut.question, cut.answers)
