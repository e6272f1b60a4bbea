from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import cv2
import gymnasium as gym
import numpy as np
import pytest

from visenv.data.source import FixedSamples
from visenv.envs.mags.boxes import MOST_AREA, area, native_window
from visenv.envs.mags.ground_truth import MagsTruth
from visenv.envs.mags.world import SCENES, MagsWorld
from visenv.envs.mags.world.questions import SceneDraft, make_scene
from visenv.envs.mags.world.render import LEAVES
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample

HIDDEN = [name for name in SCENES if SCENES[name].degradation is None]
NAMES = [*HIDDEN, "degraded"]


def scenes_of(name: str, count: int) -> list[SceneDraft]:
    return [make_scene(np.random.default_rng(seed), SCENES[name]) for seed in range(count)]


def sample_of(name: str, seed: int) -> Sample:
    return MagsWorld(name).sample(np.random.default_rng(seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_box_that_is_valid_never_holds_all_details_of_a_question(name: str) -> None:
    side = SCENES[name].view_side
    several = 0
    for scene in scenes_of(name, 200):
        if (
            scene.kind == "attribute"
            or len(scene.targets if scene.kind == "relation" else scene.signs) < 2
        ):
            continue
        asked = scene.targets if scene.kind == "relation" else scene.evidence
        boxes = [scene.signs[place].panel for place in asked]
        low = [min(box[axis] for box in boxes) for axis in (0, 1)]
        high = [max(box[axis + 2] for box in boxes) for axis in (0, 1)]
        # The crop of a box is rounded outwards to native pixels: the smallest box whose crop holds
        # the panels is almost one native pixel smaller on each side.
        inset = float(1 / SCENES[name].unit) * 0.999
        box = (low[0] + inset, low[1] + inset, high[0] - inset, high[1] - inset)
        window = native_window(box, (side, side), (SCENES[name].side,) * 2)
        assert window.left <= low[0] * SCENES[name].unit
        assert window.bottom >= high[1] * SCENES[name].unit
        assert area(box) >= MOST_AREA * side**2
        several += 1
    assert several > 80


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_answers_and_kinds_are_balanced(name: str) -> None:
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    options: dict[str, int] = {}
    for scene in scenes_of(name, 1500):
        kind = f"{scene.kind} {scene.detail}"
        answers[kind][scene.answer] += 1
        options[kind] = len(scene.options)
        assert scene.answer in scene.options
    for kind, counts in answers.items():
        total, chance = counts.total(), 1 / options[kind]
        spread = 4 * np.sqrt(chance * (1 - chance) / total)  # four standard deviations
        for count in counts.values():
            assert abs(count / total - chance) < spread, (kind, counts)


@pytest.mark.parametrize("name", NAMES)
def test_answer_is_true_of_the_signs(name: str) -> None:
    for scene in scenes_of(name, 100):
        words = scene.question.replace("?", "").split()
        if scene.kind == "counting":
            value = words[-2] if scene.detail == "colour" else words[-1]
            assert int(scene.answer) == scene.values.count(value) == len(scene.targets)
            assert len(scene.signs) == SCENES[name].signs[1]
        elif scene.kind == "attribute":
            asked = next(sign for sign in scene.signs if sign.name in scene.question)
            assert scene.values[scene.signs.index(asked)] == scene.answer
        else:
            places = [words.index(value) for value in scene.values[:2]]
            first, second = (scene.signs[each].box for each in np.argsort(places))
            left = first.left < second.left if "left" in words else first.top < second.top
            assert (scene.answer == "yes") == left


@pytest.mark.parametrize("name", HIDDEN)
def test_view_is_the_same_whatever_the_answer_is(name: str) -> None:
    """Check that the panels of all signs have equal levels in the view, except for the grain."""
    scenes = SCENES[name]
    for seed in range(4):
        sample = sample_of(name, seed)
        view = cv2.resize(
            sample.images[0].pixels, (scenes.view_side,) * 2, interpolation=cv2.INTER_AREA
        )
        for sign in sample.truth_as(MagsTruth).signs:
            left, top, right, bottom = (int(edge / scenes.unit) for edge in sign.detail_box)
            panel = view[top + 1 : bottom - 1, left + 1 : right - 1].astype(float)
            assert np.abs(panel - 110).mean() < 1.5
            assert np.abs(panel.mean((0, 1)) - 110).max() < 1.0


@pytest.mark.slow
def test_leaves_cover_no_detail() -> None:
    world = MagsWorld("complex")
    for seed in range(10):
        sample, rendered = world.pair(np.random.default_rng(seed))
        for sign in sample.truth_as(MagsTruth).signs:
            left, top, right, bottom = (4 * int(edge) for edge in sign.detail_box)
            panel = rendered[top:bottom, left:right].astype(int)
            for leaf in LEAVES:  # no detail has such a color, and the grain is 4 levels
                assert (np.abs(panel - leaf).max(-1) > 6).all(), (seed, sign.name)


@pytest.mark.parametrize("name", HIDDEN)
def test_native_image_shows_what_the_view_hides(name: str) -> None:
    sample = sample_of(name, 0)
    for sign in sample.truth_as(MagsTruth).signs:
        left, top, right, bottom = (int(edge) for edge in sign.detail_box)
        panel = sample.images[0].pixels[top:bottom, left:right].astype(float)
        assert panel.std() > 8


def test_native_image_is_the_rendered_one_averaged() -> None:
    world = MagsWorld("tiny-complex")
    sample, rendered = world.pair(np.random.default_rng(3))
    side = world.scenes.side
    assert rendered.shape == (4 * side, 4 * side, 3)
    averaged = rendered.reshape(side, 4, side, 4, 3).mean((1, 3))
    assert np.abs(averaged - sample.images[0].pixels).max() <= 0.51


def test_equal_generators_make_equal_scenes() -> None:
    for name in NAMES:
        assert sample_of(name, 5) == sample_of(name, 5)
        assert sample_of(name, 5).id != sample_of(name, 6).id


def test_kinds_can_be_chosen() -> None:
    world = MagsWorld("tiny", kinds=("counting",))
    assert {world.sample(np.random.default_rng(seed)).kind for seed in range(8)} == {"counting"}


@pytest.mark.slow
def test_stripes_have_the_chosen_colors_and_signs_lie_on_the_grid() -> None:
    world = MagsWorld(
        "complex", details=("colour",), stripe_colors=("red", "blue", "cyan"), grid=32
    )
    unit = int(world.scenes.unit)
    for seed in range(10):
        truth = world.sample(np.random.default_rng(seed)).truth_as(MagsTruth)
        assert {sign.answer for sign in truth.signs} <= {"red", "blue", "cyan"}
        for sign in truth.signs:
            left, top, right, bottom = (edge / unit for edge in sign.box)
            cells = -(-(right - left) // 32)
            for low, high in ((left, right), (top, bottom)):
                assert low // 32 + cells == -(-high // 32)
                assert abs((low % 32) - (-high % 32)) <= 1  # in the middle of its cells


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"scenes": "simpel"}, "Did you mean 'simple'"),
        ({"kind": ("counting",)}, "Did you mean 'kinds'"),
        ({"kinds": ("count",)}, "Did you mean 'counting'"),
        ({"kinds": ()}, "must not be empty"),
        ({"signs": (3, 2)}, "1 to 8 signs"),
        ({"view_side": 100}, "multiple"),
        ({"detail": 200}, "at most half of view_side, 256 px"),
        ({"grid": 0}, "grid must be at least 1"),
        ({"grid": 257}, "at most view_side, 256 px"),
        ({"least_detail": 31}, "at most detail, 30, got 31"),
        ({"material": "photograph"}, "Did you mean 'photographs'"),
        ({"stripe_colors": ("red", "blue")}, "three or more colors"),
        ({"stripe_colors": ("red", "red", "blue")}, "stripe_colors must differ"),
        ({"stripe_colors": ("red", "cyan", "bleu")}, "Did you mean 'blue'"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments: dict[str, object], part: str) -> None:
    with pytest.raises((UnknownNameError, ConfigurationError), match=part):
        MagsWorld(**arguments)  # type: ignore[arg-type]


@pytest.mark.slow
def test_grid_with_too_few_cells_is_refused() -> None:
    world = MagsWorld("tiny-complex", grid=64)
    with pytest.raises(ConfigurationError, match="no places for 3 signs on a grid of 64 px"):
        world.sample(np.random.default_rng(0))


def test_fixed_samples_are_those_of_the_seeds() -> None:
    world = MagsWorld("tiny")
    source = FixedSamples(world, [3, 9])
    assert len(source) == 2
    assert source[1] == world.sample(np.random.default_rng(9))
    assert source.ground_truth is MagsTruth
    with pytest.raises(ConfigurationError, match="each only once"):
        FixedSamples(world, [1, 1])
    with pytest.raises(ConfigurationError, match="at least one"):
        FixedSamples(world, [])


@pytest.mark.parametrize("seed", [-1, 1.5, "3", True, None])
def test_fixed_sample_needs_a_whole_number_as_seed(seed: object) -> None:
    with pytest.raises(ConfigurationError, match="whole number of at least 0"):
        FixedSamples(MagsWorld("tiny"), [7, seed])  # type: ignore[list-item]


def test_fixed_sample_is_that_of_a_reset_with_the_seed() -> None:
    env = gym.make("visenv/MagsZoom-v0", preset="tiny", magnifier="none")
    source = FixedSamples(MagsWorld("tiny-complex"), [3, 9])
    for index, seed in enumerate(source.seeds):
        env.reset(seed=seed)
        base: Any = env.unwrapped
        assert base.sample == source[index]
