from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from visenv.data.source import IndexedSource, ProceduralSource
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Sample
from visenv.worlds.scenes import KINDS, ScenesWorld

pytestmark = pytest.mark.component("opencv")

SMALL: dict[str, Any] = {"width": 512, "height": 384, "view_side": 128}


def scene(seed: int, preset: str = "small", **overrides: Any) -> Sample:
    return ScenesWorld(preset, **overrides).sample(np.random.default_rng(seed))


def test_scenes_world_is_a_procedural_source() -> None:
    world = ScenesWorld()
    assert isinstance(world, ProceduralSource)
    assert not isinstance(world, IndexedSource)


@pytest.mark.parametrize("preset", ["small", "tiny"])
def test_scenes_are_seeded_to_the_byte(preset: str) -> None:
    world = ScenesWorld(preset)
    world.sample(np.random.default_rng(9))  # an earlier scene has no effect
    one, two = world.sample(np.random.default_rng(3)), scene(3, preset)
    assert one == two
    assert one.images[0].pixels.tobytes() == two.images[0].pixels.tobytes()


def test_callers_generator_is_the_only_source_of_chance() -> None:
    world = ScenesWorld("small", **SMALL)
    rng = np.random.default_rng(4)
    first, second = world.sample(rng), world.sample(rng)
    assert first.id != second.id
    rng = np.random.default_rng(4)
    assert [world.sample(rng), world.sample(rng)] == [first, second]


def test_seeds_differ() -> None:
    samples = [scene(seed, **SMALL) for seed in range(20)]
    assert len({sample.id for sample in samples}) == 20
    assert len({sample.images[0].sha256 for sample in samples}) == 20


@pytest.mark.parametrize(
    ("preset", "size"),
    [
        ("default", (3072, 2304)),
        ("small", (1024, 1024)),
        ("4k", (3840, 2160)),
        ("8k", (7680, 4320)),
    ],
)
def test_presets_have_their_size(preset: str, size: tuple[int, int]) -> None:
    sample = scene(0, preset)
    assert sample.images[0].size == size
    assert sample.images[0].pixels.dtype == np.uint8


@pytest.mark.parametrize("difficulty", [0.0, 0.5, 1.0])
def test_boxes_are_exact_and_signs_apart(difficulty: float) -> None:
    for seed in range(12):
        sample = scene(seed, difficulty=difficulty, **SMALL)
        width, height = sample.images[0].size
        signs = sample.ground_truth.signs
        assert sample.ground_truth.target_box == signs[0].box
        assert sample.ground_truth.detail_box == signs[0].detail_box
        for sign in signs:
            left, top, right, bottom = sign.box
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height
            inner = sign.detail_box
            assert left < inner[0] < inner[2] < right
            assert top < inner[1] < inner[3] < bottom
        for index, sign in enumerate(signs):
            for other in signs[:index]:
                assert not _overlap(sign.box, other.box)


def _overlap(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return max(one[0], other[0]) < min(one[2], other[2]) and max(one[1], other[1]) < min(
        one[3], other[3]
    )


def test_box_is_where_the_frame_and_the_detail_are() -> None:
    sample = scene(1, "tiny", grain=0)
    pixels = sample.images[0].pixels
    left, top, right, bottom = sample.ground_truth.target_box
    orange = (pixels == (255, 140, 0)).all(axis=2)
    rows, columns = np.nonzero(orange)
    assert [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] == [
        left,
        top,
        right,
        bottom,
    ]
    inner = sample.ground_truth.detail_box
    assert not orange[inner[1] : inner[3], inner[0] : inner[2]].any()
    assert pixels[inner[1] : inner[3], inner[0] : inner[2]].std() > 20


def test_question_names_one_sign_and_its_answer_is_an_option() -> None:
    for seed in range(25):
        sample = scene(seed, **SMALL)
        names = [sign.name for sign in sample.ground_truth.signs]
        assert len(set(names)) == len(names)
        named = names[0] if len(names) > 1 else "the sign"
        assert sample.question == KINDS[sample.kind].question.format(sign=named)
        assert sum(name in sample.question for name in names) == (len(names) > 1)
        assert sample.answers == (sample.ground_truth.signs[0].answer,)
        assert sample.ground_truth.options == KINDS[sample.kind].options
        assert sample.answers[0] in sample.ground_truth.options


# The chi-square values that chance exceeds 1 time in 10,000, by degrees of freedom.
CRITICAL = {1: 15.1, 3: 21.1, 5: 25.7, 31: 69.1}


def _chi_square(counts: Counter[str], options: tuple[str, ...]) -> float:
    expected = sum(counts.values()) / len(options)
    return sum((counts[option] - expected) ** 2 / expected for option in options)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_uniform(kind: str) -> None:
    options = KINDS[kind].options
    size = {"width": 64, "height": 64, "view_side": 32}
    world = ScenesWorld("tiny", kinds=(kind,), **size)
    rng = np.random.default_rng(5)
    counts = Counter(world.sample(rng).answers[0] for _ in range(12 * len(options) + 100))
    assert set(counts) <= set(options)
    assert _chi_square(counts, options) < CRITICAL[len(options) - 1]


def test_kinds_are_uniform() -> None:
    world = ScenesWorld("small", width=512, height=512, view_side=128, clutter=(0, 0), signs=(1, 1))
    rng = np.random.default_rng(6)
    counts = Counter(world.sample(rng).kind for _ in range(200))
    assert _chi_square(counts, tuple(KINDS)) < CRITICAL[3]


def test_difficulty_makes_details_smaller_and_signs_more() -> None:
    easy, hard = (scene(2, difficulty=level) for level in (0.0, 1.0))
    assert len(easy.ground_truth.signs) < len(hard.ground_truth.signs)
    boxes = [each.ground_truth.detail_box for each in (easy, hard)]
    sides = [right - left for left, _, right, _ in boxes]
    assert sides[0] > sides[1]


def test_signs_that_do_not_fit_are_left_out() -> None:
    crowded = scene(0, width=512, height=512, view_side=128, signs=(20, 20))
    assert 1 <= len(crowded.ground_truth.signs) < 20


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"difficulty": 1.5}, "difficulty must be 0 to 1"),
        ({"difficulty": float("nan")}, "difficulty must be 0 to 1"),
        ({"view_side": 2048}, "exceeds the native size"),
        ({"width": 1000, "height": 1001}, "does not shrink evenly"),
        ({"width": 8}, "at least 16"),
        ({"kinds": ()}, "at least one kind"),
        ({"signs": (1, 99)}, "cannot all differ"),
        ({"signs": (0, 1)}, "at least 1 sign"),
        ({"grain": 20}, "grain must be 0 to 9"),
        ({"width": 32, "height": 32, "view_side": 32}, "does not fit"),
    ],
)
def test_values_out_of_range_are_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ScenesWorld("small", **overrides)


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'default'"):
        ScenesWorld("defalt")
    with pytest.raises(UnknownNameError, match="Did you mean 'difficulty'"):
        ScenesWorld("small", difficult=0.3)
    with pytest.raises(UnknownNameError, match="Did you mean 'colour'"):
        ScenesWorld("small", kinds=("color",))
