from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.zoom_vqa.tools import INPUT_IMAGE, CropShape, KeypointZoom, crop_window
from visenv.errors import ConfigurationError, ToolError, UnknownNameError
from visenv.images import scale_window
from visenv.tools import Store
from visenv.types import Image, Sample


def picture(width: int, height: int, seed: int = 0) -> Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.from_pixels(pixels)


def opened(tool: KeypointZoom, view: Image, native: Image | None = None) -> Store:
    store = Store()
    tool.reset(Sample("sample-1", "?", (native or view,)), store)
    store.images[INPUT_IMAGE] = view
    return store


def crop_of(tool: KeypointZoom, store: Store, keypoint: Any) -> tuple[Image, dict[str, Any]]:
    result = tool.run({"keypoint": keypoint}, store)
    (image,) = result.parts
    assert isinstance(image, Image)
    return image, dict(result.detail)


# ------------------------------------------------------------------------------- crop_window


@pytest.mark.parametrize(
    ("size", "keypoint", "side", "shape", "expected"),
    [
        # Far from the borders: 500 - 200 = 300, 500 + 200 = 700.
        ((1000, 1000), (500, 500), 400, "square", (300, 300, 700, 700)),
        # Left is 10 - 200 < 0, so 0 to 400; bottom is 790 + 200 > 800, so 400 to 800.
        ((1000, 800), (10, 790), 400, "square", (0, 400, 400, 800)),
        # The image is narrower than the crop: the crop has the whole width, 300.
        ((300, 1000), (150, 500), 400, "square", (0, 300, 300, 700)),
        # Both sides are smaller than the crop: the crop is the whole image.
        ((120, 90), (3, 89), 400, "square", (0, 0, 120, 90)),
        # 400 sqrt2 = 565.7 -> 566, half 283; 400 / sqrt2 = 282.8 -> 283, half (rounded down) 141.
        ((2000, 2000), (1000, 1000), 400, "wide", (717, 859, 1283, 1142)),
        ((2000, 2000), (1000, 1000), 400, "tall", (859, 717, 1142, 1283)),
        # An odd side: 5 // 2 = 2 to the left of the point, 2 to its right, and the point itself.
        ((100, 100), (50, 50), 5, "square", (48, 48, 53, 53)),
    ],
)
def test_window_worked_by_hand(
    size: tuple[int, int],
    keypoint: tuple[int, int],
    side: int,
    shape: CropShape,
    expected: tuple[int, int, int, int],
) -> None:
    assert crop_window(size, keypoint, side, shape) == expected


@given(st.data(), st.integers(1, 3000), st.integers(1, 3000), st.integers(2, 900))
def test_window_is_inside_has_its_size_and_holds_the_keypoint(
    data: st.DataObject, width: int, height: int, side: int
) -> None:
    x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    left, top, right, bottom = crop_window((width, height), (x, y), side)
    assert 0 <= left <= x < right <= width
    assert 0 <= top <= y < bottom <= height
    assert (right - left, bottom - top) == (min(side, width), min(side, height))
    if side // 2 <= x <= width - side:
        assert left == x - side // 2


def test_window_scales_to_native_pixels() -> None:
    # 7680 / 1024 = 7.5: 100 -> 750, 300 -> 2250; 4320 / 576 = 7.5: 50 -> 375, 250 -> 1875.
    scaled = scale_window(crop_window((1024, 576), (200, 150), 200), (1024, 576), (7680, 4320))
    assert scaled == (750, 375, 2250, 1875)


@given(st.integers(0, 95), st.integers(0, 95), st.integers(96, 5000))
def test_scaled_window_stays_inside(x: int, y: int, native: int) -> None:
    window = scale_window(crop_window((96, 96), (x, y), 36), (96, 96), (native, native))
    assert 0 <= window.left < window.right <= native
    assert 0 <= window.top < window.bottom <= native


# ------------------------------------------------------------------------------------ tool


def test_result_is_the_window_resampled_by_lanczos_to_the_views_long_side() -> None:
    from PIL import Image as PilImage

    view = picture(640, 480)
    tool = KeypointZoom(crop_side=100)
    image, detail = crop_of(tool, opened(tool, view), [320, 240])
    box = (270, 190, 370, 290)
    bare = PilImage.fromarray(view.pixels).crop(box)
    expected = bare.resize((640, 640), PilImage.Resampling.LANCZOS)
    np.testing.assert_array_equal(image.pixels, np.asarray(expected))
    assert detail == {
        "image": INPUT_IMAGE,
        "keypoint": [320, 240],
        "shown_box": list(box),
        "box": list(box),
    }


def test_native_source_cuts_the_same_part_from_the_larger_image() -> None:
    from PIL import Image as PilImage

    native = picture(1024, 1024)
    view = picture(96, 96, seed=1)
    tool = KeypointZoom(crop_side=36, source="native")
    image, detail = crop_of(tool, opened(tool, view, native), [48, 20])
    # View px 30..66 and 2..38, times 1024 / 96 = 10.667: 320..704 and 21.33..405.33.
    assert detail["shown_box"] == [30, 2, 66, 38]
    assert detail["box"] == [320, 21, 704, 405]
    bare = PilImage.fromarray(native.pixels).crop((320, 21, 704, 405))
    expected = bare.resize((96, 96), PilImage.Resampling.LANCZOS)
    np.testing.assert_array_equal(image.pixels, np.asarray(expected))


def test_view_source_reports_the_box_in_native_pixels_too() -> None:
    tool = KeypointZoom(crop_side=36)
    _, detail = crop_of(tool, opened(tool, picture(96, 96), picture(192, 192)), [0, 95])
    assert detail["shown_box"] == [0, 60, 36, 96]
    assert detail["box"] == [0, 120, 72, 192]


@pytest.mark.parametrize(
    ("shape", "size"),
    # 200 sqrt2 = 283, 200 / sqrt2 = 141: the other side is 600 * 141 / 283 = 298.9.
    [("square", (600, 600)), ("wide", (600, 299)), ("tall", (299, 600))],
)
def test_shape_keeps_its_aspect(shape: CropShape, size: tuple[int, int]) -> None:
    tool = KeypointZoom(crop_side=200, shape=shape)
    image, _ = crop_of(tool, opened(tool, picture(600, 500)), [300, 250])
    assert image.size == size


def test_small_image_is_enlarged_to_the_crops_side() -> None:
    tool = KeypointZoom()
    image, _ = crop_of(tool, opened(tool, picture(100, 50)), [1, 1])
    assert image.size == (400, 200)  # long side max(100, 50, 400), 2:1


def test_result_is_capped_at_the_pixel_budget_in_one_resampling() -> None:
    from PIL import Image as PilImage

    view = picture(900, 600)
    tool = KeypointZoom(crop_side=300, max_pixels=448 * 448)
    image, _ = crop_of(tool, opened(tool, view), [450, 300])
    assert image.size == (448, 448)
    bare = PilImage.fromarray(view.pixels).crop((300, 150, 600, 450))
    expected = bare.resize((448, 448), PilImage.Resampling.LANCZOS)
    np.testing.assert_array_equal(image.pixels, np.asarray(expected))


# -------------------------------------------------------------------------------- hostile input

HOSTILE = [
    [1.0, 2],
    [True, False],
    ["1", "2"],
    "[1, 2]",
    [float("nan"), 1],
    [float("inf"), 1],
    [1e308, 1],
    [1],
    [1, 2, 3],
    [],
    [[1, 2]],
    {"x": 1, "y": 2},
    None,
    7,
]


@pytest.mark.parametrize("keypoint", HOSTILE, ids=repr)
def test_keypoint_that_is_not_two_integers_is_refused(keypoint: Any) -> None:
    tool = KeypointZoom()
    with pytest.raises(ToolError, match="zoom takes keypoint"):
        tool.run({"keypoint": keypoint}, opened(tool, picture(64, 64)))


@pytest.mark.parametrize(
    "keypoint", [[-1, 0], [0, -1], [64, 0], [0, 48], [10**400, 1], [-(10**5000), 1]], ids=len
)
def test_keypoint_outside_is_refused_with_the_size(keypoint: list[int]) -> None:
    tool = KeypointZoom()
    with pytest.raises(ToolError, match="64 wide and 48 high") as refusal:
        tool.run({"keypoint": keypoint}, opened(tool, picture(64, 48)))
    assert len(str(refusal.value)) < 400


def test_corners_are_inside() -> None:
    tool = KeypointZoom(crop_side=8)
    store = opened(tool, picture(64, 48))
    for corner in ([0, 0], [63, 0], [0, 47], [63, 47]):
        assert crop_of(tool, store, corner)[0].size == (64, 64)


def test_arguments_that_are_missing_or_unknown_are_refused() -> None:
    tool = KeypointZoom()
    store = opened(tool, picture(64, 64))
    for arguments in ({}, {"keypoint": [1, 1], "image": "tool_result_1"}, {"point": [1, 1]}):
        with pytest.raises(ToolError, match="zoom takes keypoint"):
            tool.run(arguments, store)


def test_missing_image_is_named() -> None:
    tool = KeypointZoom()
    with pytest.raises(ToolError, match="input_image"):
        tool.run({"keypoint": [1, 1]}, Store())


_SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
_VALUE = _SCALAR | st.lists(_SCALAR | st.integers(0, 20), max_size=3)


@given(st.dictionaries(st.sampled_from(["keypoint", "image"]), _VALUE))
def test_zoom_answers_or_refuses_whatever_is_passed(arguments: dict[str, Any]) -> None:
    tool = KeypointZoom(crop_side=8)
    store = opened(tool, picture(16, 16))
    try:
        result = tool.run(arguments, store)
    except ToolError:
        return
    json.dumps(result.detail)
    assert arguments == {"keypoint": result.detail["keypoint"]}


def test_options_that_are_invalid_list_the_choices() -> None:
    options: list[dict[str, Any]] = [
        {"shape": "round"},
        {"source": "natve"},
        {"keypoint_source": "oracle"},
    ]
    for option in options:
        with pytest.raises(UnknownNameError, match="Known"):
            KeypointZoom(**option)
    with pytest.raises(ConfigurationError, match="crop_side"):
        KeypointZoom(crop_side=0)


# ----------------------------------------------------------------------------------- control


def test_random_control_ignores_where_the_policy_points_and_is_fixed_by_the_sample() -> None:
    def crops(keypoint: list[int], sample_id: str) -> list[list[int]]:
        tool = KeypointZoom(crop_side=20, keypoint_source="random")
        view = picture(200, 200)
        store = Store()
        tool.reset(Sample(sample_id, "?", (view,)), store)
        store.images[INPUT_IMAGE] = view
        return [crop_of(tool, store, keypoint)[1]["keypoint"] for _ in range(3)]

    assert crops([5, 5], "a") == crops([150, 20], "a")
    assert crops([5, 5], "a") != crops([5, 5], "b")
    assert len({tuple(point) for point in crops([5, 5], "a")}) == 3


def test_random_control_still_refuses_what_is_outside() -> None:
    tool = KeypointZoom(keypoint_source="random")
    with pytest.raises(ToolError, match="outside"):
        tool.run({"keypoint": [64, 1]}, opened(tool, picture(64, 64)))


def test_random_arguments_are_valid_and_the_example_fits_the_model() -> None:
    tool = KeypointZoom(crop_side=4)
    store = opened(tool, picture(9, 7))
    rng = np.random.default_rng(0)
    points = {tuple(tool.random_arguments(rng, store).keypoint) for _ in range(400)}
    assert {x for x, _ in points} == set(range(9))
    assert {y for _, y in points} == set(range(7))
    assert tool.arguments.model_validate(tool.example().model_dump()) == tool.example()


def test_open_tool_pickles_and_continues_the_same() -> None:
    tool = KeypointZoom(crop_side=20, keypoint_source="random")
    store = opened(tool, picture(64, 64))
    crop_of(tool, store, [1, 1])
    twin, twin_store = pickle.loads(pickle.dumps((tool, store)))
    assert crop_of(tool, store, [1, 1])[1] == crop_of(twin, twin_store, [1, 1])[1]
