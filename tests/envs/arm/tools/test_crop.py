"""Tests CropZoom: the box and its pixels, its messages, and the calls that it refuses."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.envs.arm.tools.crop import ORIGINAL_IMAGE, CropZoom
from visenv.errors import ConfigurationError, ToolError, UnknownNameError
from visenv.grammar import ToolCallGrammar
from visenv.images import fit
from visenv.tools import Store, shown
from visenv.types import Image, Pixels, Sample


def picture(width: int, height: int, seed: int = 0) -> Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.from_pixels(pixels)


def opened(tool: CropZoom, native: Image, view: Image | None = None) -> Store:
    """Begin an episode as an environment does: reset the tool first, then store the image."""
    store = Store()
    tool.reset(Sample("sample-1", "?", (native,)), store)
    store.images[ORIGINAL_IMAGE] = view or native
    return store


def zoomed(
    tool: CropZoom, store: Store, box: Any, image: str = ORIGINAL_IMAGE
) -> tuple[Image, str, dict[str, Any]]:
    """Call the tool, and store the result as the environment does."""
    result = tool.run({"image": image, "bbox_2d": box}, store)
    crop, text = result.parts
    assert isinstance(crop, Image)
    assert isinstance(text, str)
    store.add_image("observation_", crop)
    return crop, text, dict(result.detail)


def bicubic(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    from PIL import Image as PilImage

    resized = PilImage.fromarray(pixels).resize(size, PilImage.Resampling.BICUBIC)
    return np.asarray(resized)


# ------------------------------------------------------------------------------- boxes and pixels


def test_large_box_is_cut_as_it_is() -> None:
    tool, native = CropZoom(), picture(1000, 800)
    result, text, detail = zoomed(tool, opened(tool, native), [100, 250, 600, 750])
    # x 0.1 * 1000 to 0.6 * 1000, y 0.25 * 800 to 0.75 * 800.
    np.testing.assert_array_equal(result.pixels, native.pixels[200:600, 100:600])
    assert detail == {
        "image": ORIGINAL_IMAGE,
        "shown_box": [100, 200, 600, 600],
        "origin": ORIGINAL_IMAGE,
        "box": [100, 200, 600, 600],
        "scale": 1.0,
        "enlarged": 1.0,
    }
    assert text == "This is [100, 250, 600, 750] of original_image."


def test_small_crop_is_enlarged_twice_by_pillows_bicubic_kernel() -> None:
    tool, native = CropZoom(), picture(1000, 1000)
    result, _, _ = zoomed(tool, opened(tool, native), [0, 0, 223, 400])
    np.testing.assert_array_equal(result.pixels, bicubic(native.pixels[:400, :223], (446, 800)))


def test_thin_box_is_widened_with_a_message() -> None:
    tool, native = CropZoom(), picture(1000, 1000)
    result, text, detail = zoomed(tool, opened(tool, native), [10, 10, 12, 300])
    assert detail["box"] == [0, 10, 28, 300]  # calculated in test_crop_box
    assert result.size == (56, 580)
    assert text == "This is [0, 10, 28, 300] of original_image."


def test_view_is_cut_from_the_native_pixels_behind_it() -> None:
    tool, native = CropZoom(), picture(3000, 2000)
    view = fit(native, 300 * 200)
    result, _, detail = zoomed(tool, opened(tool, native, view), [500, 500, 600, 650])
    np.testing.assert_array_equal(result.pixels, native.pixels[1000:1300, 1500:1800])
    # in the view, which has a tenth of the native size
    assert detail["shown_box"] == [150, 100, 180, 130]
    assert detail["box"] == [1500, 1000, 1800, 1300]


def test_picture_under_the_name_is_cut_as_it_is_stored() -> None:
    """Check a page overview, which is no view, because the sample's image has another shape."""
    tool, view = CropZoom(), picture(400, 400)
    result, _, detail = zoomed(tool, opened(tool, picture(3000, 2000), view), [0, 0, 1000, 1000])
    assert result == view
    assert detail["box"] == [0, 0, 400, 400]


def test_chain_of_crops_keeps_native_pixels() -> None:
    tool, native = CropZoom(), picture(4000, 4000)
    store = opened(tool, native, fit(native, 400 * 400))
    zoomed(tool, store, [250, 250, 300, 300])  # 1000..1200, shown at 400 x 400
    assert store.images["observation_1"].size == (400, 400)
    result, text, detail = zoomed(tool, store, [500, 0, 1000, 500], "observation_1")
    # The upper right quarter of the crop, from native pixels 1100..1200 x 1000..1100, and not from
    # the enlarged pixels.
    expected = bicubic(native.pixels[1000:1100, 1100:1200], (200, 200))
    np.testing.assert_array_equal(result.pixels, expected)
    assert detail == {
        "image": "observation_1",
        "shown_box": [200, 0, 400, 200],
        "origin": ORIGINAL_IMAGE,
        "box": [1100, 1000, 1200, 1100],
        "scale": 2.0,  # 100 native pixels are shown in 200
        "enlarged": 20.0,  # these 100 pixels were 10 pixels in the view
    }
    assert text == "This is [500, 0, 1000, 500] of observation_1."


def test_shrunk_crop_gives_its_detail_back() -> None:
    """Check that a zoom into a crop that the budget reduced has all native pixels again."""
    tool, native = CropZoom(max_pixels=100 * 100), picture(2000, 2000)
    store = opened(tool, native)
    first, _, _ = zoomed(tool, store, [0, 0, 500, 500])
    assert first.size == (100, 100)
    second, _, detail = zoomed(tool, store, [0, 0, 100, 100], "observation_1")
    np.testing.assert_array_equal(second.pixels, native.pixels[:100, :100])
    assert detail["box"] == [0, 0, 100, 100]


def test_third_crop_of_a_chain_has_its_origin() -> None:
    tool, native = CropZoom(), picture(4000, 4000)
    store = opened(tool, native)
    zoomed(tool, store, [500, 500, 1000, 1000])  # 2000..4000
    zoomed(tool, store, [500, 500, 1000, 1000], "observation_1")  # 3000..4000
    result, _, detail = zoomed(tool, store, [0, 0, 500, 250], "observation_2")
    np.testing.assert_array_equal(result.pixels, native.pixels[3000:3250, 3000:3500])
    assert detail["box"] == [3000, 3000, 3500, 3250]


def test_crop_that_the_environment_shrank_is_cut_as_it_is_stored() -> None:
    tool, native = CropZoom(), picture(1000, 1000)
    store = opened(tool, native)
    result, _, _ = zoomed(tool, store, [0, 0, 1000, 1000])
    store.images["observation_1"] = fit(result, 500 * 500)
    again, _, detail = zoomed(tool, store, [0, 0, 1000, 1000], "observation_1")
    assert again.size == (500, 500)
    assert (detail["origin"], detail["box"]) == ("observation_1", [0, 0, 500, 500])


def test_images_are_distinguished_by_name() -> None:
    tool, first, second = CropZoom(), picture(500, 500), picture(600, 600, seed=1)
    store = Store()
    tool.reset(Sample("sample-1", "?", (first, second)), store)
    store.images = {"original_image": first, "original_image_1": fit(second, 60 * 60)}
    result, _, detail = zoomed(tool, store, [0, 0, 500, 500], "original_image_1")
    np.testing.assert_array_equal(result.pixels, second.pixels[:300, :300])
    assert (detail["origin"], detail["shown_box"]) == ("original_image_1", [0, 0, 30, 30])


def test_image_of_another_tool_can_be_zoomed_into() -> None:
    tool, page = CropZoom(), picture(800, 1000, seed=2)
    store = opened(tool, picture(500, 500))
    name = store.add_image("observation_", page)
    result, _, detail = zoomed(tool, store, [0, 0, 500, 500], name)
    np.testing.assert_array_equal(result.pixels, page.pixels[:500, :400])
    assert detail["origin"] == name


def test_result_is_capped_at_the_pixel_budget_in_one_resampling() -> None:
    tool, native = CropZoom(max_pixels=300 * 300), picture(1000, 1000)
    store = opened(tool, native)
    result, _, _ = zoomed(tool, store, [0, 0, 200, 200])
    # Twice 200 is over the budget of 300, so that the crop is directly enlarged to 300.
    np.testing.assert_array_equal(result.pixels, bicubic(native.pixels[:200, :200], (300, 300)))
    assert zoomed(tool, store, [0, 0, 1000, 1000])[0].size == (300, 300)


def test_new_episode_forgets_the_crops_of_the_old_one() -> None:
    tool = CropZoom()
    store = opened(tool, picture(1000, 1000))
    crop, _, _ = zoomed(tool, store, [0, 0, 500, 500])
    store = opened(tool, picture(300, 300))
    name = store.add_image("observation_", crop)
    assert zoomed(tool, store, [0, 0, 1000, 1000], name)[2]["origin"] == name


# --------------------------------------------------------------------------- `compat="arm"`


def test_arm_cuts_from_the_stored_picture_rounded_to_28() -> None:
    tool, native = CropZoom(compat="arm"), picture(2000, 1400)
    view = fit(native, 1000 * 700)
    result, _, detail = zoomed(tool, opened(tool, native, view), [0, 0, 500, 500])
    # 1000 x 700 is rounded to 1008 x 700 (test_crop_box), of which the crop is 504 x 350.
    assert view.size == (1000, 700)
    rounded = bicubic(view.pixels, (1008, 700))
    np.testing.assert_array_equal(result.pixels, rounded[:350, :504])
    # The logged boxes are 504 / 1008 of 1000 and of 2000 pixels.
    assert (detail["shown_box"], detail["box"]) == ([0, 0, 500, 350], [0, 0, 1000, 700])


def test_arm_refuses_thin_boxes_with_a_message() -> None:
    tool = CropZoom(compat="arm")
    with pytest.raises(ToolError, match=r"covers 2.016 x 292.3 pixels of original_image"):
        zoomed(tool, opened(tool, picture(1008, 1008)), [10, 10, 12, 300])


def test_arm_chains_from_the_crop_as_it_was_shown() -> None:
    tool, native = CropZoom(compat="arm"), picture(1120, 1120)
    store = opened(tool, native)
    first, _, _ = zoomed(tool, store, [0, 0, 100, 100])  # 112 px, shown at 224
    second, _, detail = zoomed(tool, store, [500, 500, 1000, 1000], "observation_1")
    np.testing.assert_array_equal(second.pixels, bicubic(first.pixels[112:, 112:], (224, 224)))
    assert (detail["origin"], detail["box"]) == (ORIGINAL_IMAGE, [56, 56, 112, 112])


# ------------------------------------------------------------------------------ dialect qwen3


def indexed(store: Store, tool: CropZoom, place: Any, box: Any) -> tuple[Any, dict[str, Any]]:
    arguments = {"bbox_2d": box, "label": "a sign", "img_idx": place}
    result = tool.run(arguments, store)
    return result.parts[0], dict(result.detail)


def test_qwen3_counts_images_and_shows_multiples_of_32() -> None:
    tool, native = CropZoom(dialect="qwen3"), picture(1000, 1000)
    store = opened(tool, native)
    result, detail = indexed(store, tool, 0, [0, 0, 100, 200])
    # 100 x 200 is 262144 / 20000 = 13.1 times too small: 100 * 3.62 = 362.04 -> 12 * 32 = 384,
    # 724.08 -> 23 * 32 = 736.
    np.testing.assert_array_equal(result.pixels, bicubic(native.pixels[:200, :100], (384, 736)))
    assert detail["image"] == ORIGINAL_IMAGE
    store.add_image("observation_", result)
    assert indexed(store, tool, 1, [0, 0, 500, 500])[1]["image"] == "observation_1"
    assert indexed(store, tool, 0, [0, 0, 1, 1])[1]["box"] == [0, 0, 32, 32]


@pytest.mark.parametrize("place", [-1, 1, 10**9, 10**5000, 0.5, "0", None, True], ids=shown)
def test_qwen3_refuses_an_index_that_is_none(place: Any) -> None:
    tool = CropZoom(dialect="qwen3")
    with pytest.raises(ToolError, match=r"Available: 0 \(original_image\)|img_idx") as refusal:
        indexed(opened(tool, picture(64, 64)), tool, place, [0, 0, 500, 500])
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("dialect", ["qwen2.5", "qwen3"])
def test_schema_contains_the_bounds_and_the_example_satisfies_it(dialect: Any) -> None:
    tool = CropZoom(dialect=dialect)
    [line] = re.findall("<tools>\n(.*)\n</tools>", ToolCallGrammar().instructions([tool]))
    parameters = json.loads(line)["function"]["parameters"]
    names = {"qwen2.5": ["image", "bbox_2d"], "qwen3": ["bbox_2d", "label", "img_idx"]}[dialect]
    assert parameters["required"] == list(parameters["properties"]) == names
    box = parameters["properties"]["bbox_2d"]
    assert (box["minItems"], box["maxItems"]) == (4, 4)
    assert box["items"] == {"type": "number", "minimum": 0, "maximum": 1000}
    assert tool.arguments.model_validate(tool.example().model_dump()) == tool.example()


# ---------------------------------------------------------------------------- refused calls

NOT_FOUR_NUMBERS = [
    None,
    7,
    "0, 0, 5, 5",
    "0005",
    {"x1": 0},
    [],
    [0, 0, 500],
    [0, 0, 500, 500, 500],
    [[0, 0], [500, 500]],
    ["0", "0", "500", "500"],
    [True, False, True, True],
    [0, 0, None, 500],
    [0, 0, float("nan"), 500],
    [0, 0, float("inf"), 500],
    [float("-inf"), 0, 500, 500],
    [-1, 0, 500, 500],
    [0, 0, 1000.5, 500],
    [0, 0, 10**400, 500],
    [0, 0, 1e308, 500],
]


@pytest.mark.parametrize("box", NOT_FOUR_NUMBERS, ids=repr)
def test_box_that_is_not_four_numbers_from_0_to_1000_is_refused(box: Any) -> None:
    tool = CropZoom()
    with pytest.raises(
        ToolError, match=r"image_zoom_in_tool takes image, bbox_2d. bbox_2d.*\(got"
    ) as refusal:
        zoomed(tool, opened(tool, picture(64, 64)), box)
    assert len(str(refusal.value)) < 700


@pytest.mark.parametrize("box", [[500, 0, 100, 500], [0, 500, 500, 500], [5, 5, 5, 5]], ids=repr)
def test_corners_in_the_wrong_order_are_refused(box: Any) -> None:
    tool = CropZoom()
    with pytest.raises(ToolError, match=r"x1 < x2 and y1 < y2, got \[\d"):
        zoomed(tool, opened(tool, picture(64, 64)), box)


@pytest.mark.parametrize("name", ["", "observation_1", "../x", "\0", "a" * 10_000, "\ud800"])
def test_image_that_does_not_exist_is_refused_and_the_others_are_listed(name: str) -> None:
    tool = CropZoom()
    with pytest.raises(ToolError, match=r"Available: original_image|image: ") as refusal:
        zoomed(tool, opened(tool, picture(64, 64)), [0, 0, 500, 500], name)
    assert len(str(refusal.value)) < 400


def test_image_too_small_to_show_a_part_of_is_refused() -> None:
    tool = CropZoom()
    with pytest.raises(ToolError, match=r"20 x 20\. It cannot be widened to 28 pixels a side"):
        zoomed(tool, opened(tool, picture(20, 20)), [0, 0, 500, 500])


@pytest.mark.parametrize(
    "arguments",
    [{}, {"image": "original_image"}, {"bbox_2d": [0, 0, 9, 9]}, {"label": "x"}],
    ids=repr,
)
def test_missing_and_unknown_arguments_are_named(arguments: dict[str, Any]) -> None:
    tool = CropZoom()
    with pytest.raises(ToolError, match="takes image, bbox_2d"):
        tool.run(arguments, opened(tool, picture(64, 64)))


def test_options_that_are_invalid_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"qwen2\.5, qwen3"):
        CropZoom(dialect="qwen4")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="arm"):
        CropZoom(compat="verl")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="max_pixels"):
        CropZoom(max_pixels=0)


# --------------------------------------------------------------------------- any arguments

_SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
_BOX = st.lists(st.floats(0, 1000) | st.integers(0, 1000), min_size=4, max_size=4)
_VALUE = _SCALAR | st.lists(_SCALAR, max_size=5) | _BOX
_NAME = st.sampled_from(["original_image", "observation_1", "x"])
TOOLS = [
    CropZoom(),
    CropZoom(compat="arm"),
    CropZoom(max_pixels=50 * 50),
    CropZoom(dialect="qwen3"),
]
NATIVE = picture(160, 90)


@given(
    st.sampled_from(TOOLS),
    st.fixed_dictionaries({"image": _NAME | _VALUE, "bbox_2d": _BOX | _VALUE})
    | st.fixed_dictionaries({"img_idx": st.integers(0, 2), "label": _SCALAR, "bbox_2d": _BOX}),
)
def test_crop_answers_or_refuses_whatever_is_passed(tool: CropZoom, arguments: Any) -> None:
    store = opened(tool, NATIVE, fit(NATIVE, 80 * 45))
    store.add_image("observation_", NATIVE)
    try:
        result = tool.run(arguments, store)
    except ToolError as refusal:
        assert len(str(refusal)) < 1500  # noqa: PT017
        return
    (crop, text), detail = result.parts, result.detail
    json.dumps(detail)
    assert isinstance(crop, Image)
    assert isinstance(text, str)
    left, top, right, bottom = detail["box"]
    assert 0 <= left < right <= 160
    assert 0 <= top < bottom <= 90
    left, top, right, bottom = detail["shown_box"]
    stored = store.images[detail["image"]].size
    assert 0 <= left < right <= stored[0]
    assert 0 <= top < bottom <= stored[1]
    assert crop.size[0] * crop.size[1] <= tool.max_pixels


@given(st.lists(st.lists(st.integers(0, 1000), min_size=4, max_size=4), min_size=1, max_size=4))
def test_chain_never_leaves_the_crop_it_zooms_into(boxes: list[list[int]]) -> None:
    tool = CropZoom()
    store = opened(tool, NATIVE)
    name, outer = ORIGINAL_IMAGE, [0, 0, 160, 90]
    for left, top, right, bottom in boxes:
        if left >= right or top >= bottom:
            continue
        _, _, detail = zoomed(tool, store, [left, top, right, bottom], name)
        assert detail["origin"] == ORIGINAL_IMAGE
        box = detail["box"]
        assert outer[0] <= box[0] < box[2] <= outer[2]
        assert outer[1] <= box[1] < box[3] <= outer[3]
        name, outer = list(store.images)[-1], box


@pytest.mark.parametrize("tool", [CropZoom(), CropZoom(dialect="qwen3")], ids=["qwen2.5", "qwen3"])
def test_random_arguments_are_accepted(tool: CropZoom) -> None:
    store = opened(tool, NATIVE)
    store.add_image("observation_", NATIVE)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(50):
        arguments = tool.random_arguments(rng, store).model_dump(mode="json")
        seen.add(tool.run(arguments, store).detail["image"])
    assert seen == {"original_image", "observation_1"}


def test_open_tool_pickles_and_continues_the_same() -> None:
    tool = CropZoom()
    store = opened(tool, picture(2000, 2000))
    zoomed(tool, store, [0, 0, 100, 100])
    twin, twin_store = pickle.loads(pickle.dumps((tool, store)))
    ours = zoomed(tool, store, [0, 0, 500, 500], "observation_1")
    theirs = zoomed(twin, twin_store, [0, 0, 500, 500], "observation_1")
    assert ours == theirs
    assert ours[2]["origin"] == ORIGINAL_IMAGE
