"""Tests the variety of scenes: questions, styles and sizes, and unique references to signs."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from tests.programs import load_program
from visenv.envs.arm.world.judged_scenes import STATEMENTS, JudgedScenes
from visenv.worlds.scenes import KINDS, ScenesWorld, SceneTruth, SignTruth
from visenv.worlds.scenes.asked import QUESTIONS, refer
from visenv.worlds.scenes.styles import STYLES
from visenv.worlds.scenes.world import PLACES, SIZES, VariedScenes

pytestmark = pytest.mark.component("opencv")


def sign(frame: str, shape: str, x: int, y: int, side: int = 20) -> SignTruth:
    return SignTruth(
        name=f"the {frame} {shape} sign",
        frame=frame,
        shape=shape,
        answer="red",
        box=(x - side // 2, y - side // 2, x + side // 2, y + side // 2),
        detail_box=(x, y, x + 1, y + 1),
    )


def ways(*signs: SignTruth) -> set[str]:
    rng = np.random.default_rng(0)
    return {refer(rng, signs) for _ in range(400)}


def test_references_by_hand() -> None:
    asked, near, far = (
        sign("red", "round", 100, 100),
        sign("red", "square", 160, 110),
        sign("blue", "square", 900, 500),
    )
    assert ways(asked) == {"the sign"}
    assert ways(asked, near, far) == {
        "the red round sign",
        "the red round sign to the left of the red square sign",
        "the red round sign to the left of the blue square sign",
        "the round sign",
        "the sign farthest to the left",
        "the sign nearest to the red square sign",
    }


def test_reference_fits_one_sign_alone() -> None:
    """Check the margins: half of a sign's width for the farthest sign, a fifth for the nearest."""
    here = [sign("red", "round", 100, 100), sign("blue", "round", 106, 300)]
    assert not {each for each in ways(*here) if "left" in each}
    equal = [
        sign("red", "round", 100, 0),
        sign("blue", "round", 0, 0),
        sign("blue", "square", -99, 0),
    ]
    assert not {each for each in ways(*equal) if "nearest" in each}


def test_questions_and_statements_exist_for_every_kind() -> None:
    assert set(QUESTIONS) == set(STATEMENTS) == set(KINDS)
    for kind, questions in QUESTIONS.items():
        assert questions[0] == KINDS[kind].question
        assert len(set(questions)) == len(questions) >= 5
        assert all(each.count("{sign}") == 1 for each in questions)


def test_scenes_of_5000_seeds_have_2000_questions() -> None:
    """Check 1,000 seeds; `python benchmarks/variety.py` counts the questions of 5,000."""
    variety = load_program("benchmarks/variety.py")
    with variety.blank_pictures():
        world = JudgedScenes()
        drawn = [world.sample(np.random.default_rng(seed)) for seed in range(1000)]
    assert len({sample.question for sample in drawn}) > 700


def test_styles_and_sizes_are_drawn_evenly() -> None:
    world = VariedScenes()
    drawn = Counter(
        (each.preset.style, each.preset.width, each.preset.height) for each in world.worlds
    )
    assert len(drawn) == len(PLACES) * len(SIZES) >= 12
    assert not VariedScenes("tiny").is_varied
    assert not VariedScenes("default", style="night").is_varied


@pytest.mark.parametrize("style", STYLES)
def test_styles_differ_and_hide_the_detail(style: str) -> None:
    """Check that the detail is uniform in the view, and that the images of two styles differ."""
    options = {"width": 768, "height": 768, "view_side": 256, "signs": (1, 1), "kinds": ("count",)}
    made = ScenesWorld("small", **options, style=style).sample(np.random.default_rng(5))
    other = next(each for each in STYLES if each != style)
    others = ScenesWorld("small", **options, style=other).sample(np.random.default_rng(5))
    assert not np.array_equal(made.images[0].pixels, others.images[0].pixels)
    left, top, right, bottom = map(int, made.truth_as(SceneTruth).detail_box or ())
    panel = made.images[0].pixels[top:bottom, left:right].astype(float)
    side = len(panel) // 3
    view = panel.reshape(side, 3, side, 3, 3).mean((1, 3))
    assert np.ptp(panel) > 100
    assert np.abs(view - view.mean()).max() < 6  # the grain, and rounding over nine pixels


def test_question_of_a_varied_scene_names_a_sign_that_is_there() -> None:
    world, rng = JudgedScenes(2), np.random.default_rng(0)
    for _ in range(3):
        sample = world.sample(rng)
        assert re.search(r"the [a-z ]*sign", sample.question)
        assert max(sample.images[0].size) in {max(size) for size in SIZES}
