"""Tests the ablations of Groundlight's paper as options: crops, weights, and boxes in JSON."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import visenv  # noqa: F401 - registers the environments
from visenv.envs.zoom_vqa.env import ZoomVQA
from visenv.envs.zoom_vqa.rewards import RewardWeights
from visenv.envs.zoom_vqa.tools import INPUT_IMAGE, BoxZoom, KeypointZoom
from visenv.errors import ConfigurationError, ToolError, UnknownNameError
from visenv.images import Window
from visenv.tools import Store
from visenv.types import Image, Sample, ToolCalled


def opened(tool: KeypointZoom | BoxZoom, width: int = 60, height: int = 40) -> Store:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    store = Store()
    store.images[INPUT_IMAGE] = Image.from_pixels(pixels)
    tool.reset(Sample("s", "?", (store.images[INPUT_IMAGE],)), store)
    return store


def result(tool: KeypointZoom | BoxZoom, store: Store, **arguments: Any) -> tuple[Image, Any]:
    made = tool.run(arguments, store)
    (image,) = made.parts
    assert isinstance(image, Image)
    return image, made.detail


@pytest.mark.component("opencv")
def test_crop_that_is_not_enlarged_keeps_its_pixels() -> None:
    tool = KeypointZoom(crop_side=20, enlarge=False)
    store = opened(tool)
    image, detail = result(tool, store, keypoint=[30, 20])
    assert detail["shown_box"] == [20, 10, 40, 30]
    expected = store.images[INPUT_IMAGE].pixels[10:30, 20:40]
    np.testing.assert_array_equal(image.pixels, expected)
    enlarged, _ = result(KeypointZoom(crop_side=20), store, keypoint=[30, 20])
    assert enlarged.size == (60, 60)


@pytest.mark.component("opencv")
def test_enlarging_is_an_option_of_the_environment() -> None:
    for enlarge, width in ((False, 60), (True, 96)):
        env, base = played(enlarge=enlarge, crop_source="view", crop_side=60)
        env.reset(seed=0)
        observation, *_ = env.step(base.grammar.compose(base.oracle_turn()))
        assert observation["images"][0].shape[1] == width


@pytest.mark.component("opencv")
def test_box_is_cut_and_enlarged_to_the_long_side_of_the_input() -> None:
    tool = BoxZoom()
    store = opened(tool)
    image, detail = result(tool, store, bbox=[10, 5, 30, 15])
    assert image.size == (60, 30)  # 20 x 10, enlarged to the long side of the image
    assert (detail["shown_box"], detail["box"]) == ([10, 5, 30, 15], [10, 5, 30, 15])


@pytest.mark.parametrize("bbox", [[10, 5, 10, 15], [30, 5, 10, 15], [0, 0, 61, 5], [-1, 0, 5, 5]])
def test_box_outside_the_image_is_refused(bbox: list[int]) -> None:
    tool = BoxZoom()
    with pytest.raises(ToolError, match=r"0 <= x1 < x2 <= 60 and 0 <= y1 < y2 <= 40"):
        tool.run({"bbox": bbox}, opened(tool))


@st.composite
def boxes(draw: st.DrawFn) -> tuple[tuple[int, int], list[int]]:
    """Return an image's size and a box, mostly inside the image."""
    width, height = draw(st.sampled_from([(60, 40), (2000, 10), (10, 2000)]))
    x, y = st.integers(-5, width + 5), st.integers(-5, height + 5)
    return (width, height), [*draw(st.tuples(x, y, x, y))]


@given(asked=boxes(), random=st.booleans())
@example(asked=((2000, 10), [0, 0, 2000, 1]), random=False)
@example(asked=((2000, 10), [0, 0, 101, 1]), random=True)
@example(asked=((10, 2000), [0, 0, 1, 100]), random=False)
def test_boxes_are_shown_or_refused(asked: tuple[tuple[int, int], list[int]], random: bool) -> None:
    (width, height), bbox = asked
    tool = BoxZoom(keypoint_source="random" if random else "policy")
    store = opened(tool, width, height)
    try:
        image, detail = result(tool, store, bbox=bbox)
    except ToolError:
        return
    shown = Window(*detail["shown_box"])
    assert shown.size == (bbox[2] - bbox[0], bbox[3] - bbox[1])
    assert max(image.size) == max(width, height)
    assert max(image.size) <= 100 * min(image.size)
    assert 0 <= shown.left < shown.right <= width


@pytest.mark.component("opencv")
def test_thinnest_box_that_is_shown_has_sides_of_1_to_100() -> None:
    tool = BoxZoom()
    store = opened(tool, 2000, 10)
    image, _ = result(tool, store, bbox=[0, 0, 100, 1])
    assert image.size == (2000, 20)
    with pytest.raises(ToolError, match="more than 100 times as long as the other"):
        tool.run({"bbox": [0, 0, 112, 1]}, store)


def played(**options: Any) -> tuple[Any, ZoomVQA]:
    env = gym.make("visenv/ZoomVQA-v0", preset="tiny", **options)
    base = env.unwrapped
    assert isinstance(base, ZoomVQA)
    return env, base


@pytest.mark.component("opencv")
def test_oracle_gets_the_top_reward_with_the_json_box() -> None:
    env, base = played(tool="json_box")
    for seed in range(3):
        env.reset(seed=seed)
        _, reward, *_, info = env.step(base.grammar.compose(base.oracle_turn()))
        (call,) = [each for each in info["step"].events if isinstance(each, ToolCalled)]
        assert call.ok, call.reason
        _, reward, terminated, *_, info = env.step(base.grammar.compose(base.oracle_turn()))
        assert terminated
        assert reward == pytest.approx(2.1)
        assert info["step"].metrics["hit"] == 1.0


@pytest.mark.component("opencv")
def test_prompt_of_the_json_box_shows_its_schema() -> None:
    env, _ = played(tool="json_box", prompt="full")
    text = env.reset(seed=0)[0]["text"]
    schema = json.loads(text.split("<tools>\n")[1].split("\n</tools>")[0])
    assert list(schema["function"]["parameters"]["properties"]) == ["bbox"]


@pytest.mark.component("opencv")
def test_weights_of_the_reward_are_options() -> None:
    # A right answer after a zoom earns all of alpha (0.5 + 1.5), beta and gamma.
    env, base = played(alpha=2.0, beta=0.25, gamma=0.5, lambda_=0.25)
    env.reset(seed=0)
    env.step(base.grammar.compose(base.oracle_turn()))
    _, reward, *_ = env.step(base.grammar.compose(base.oracle_turn()))
    assert reward == pytest.approx(2.75)
    weights = {term.name: term.weight for term in env.get_wrapper_attr("terms")}
    assert weights == pytest.approx({"vqa": 0.5, "soft": 1.5, "format": 0.25, "tool": 0.5})


@pytest.mark.parametrize(
    "weights",
    [RewardWeights(alpha=-1), RewardWeights(lambda_=1.1), RewardWeights(gamma=float("nan"))],
)
def test_weights_that_cannot_be_are_refused(weights: RewardWeights) -> None:
    with pytest.raises(ConfigurationError, match="lambda_"):
        played(**weights._asdict())


def test_switch_is_true_or_false() -> None:
    with pytest.raises(ConfigurationError, match="enlarge must be True or False, got 1"):
        played(enlarge=1)


def test_unknown_tool_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="json_box"):
        played(tool="json_bo")


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "lambda_"])
@pytest.mark.parametrize("weight", ["1", None, [1.0], 1j, pytest.param(10**400, id="10**400")])
def test_weight_that_is_no_finite_number_is_refused(name: str, weight: Any) -> None:
    with pytest.raises(ConfigurationError, match="finite numbers"):
        played(**{name: weight})
