"""Tests that every image of a sample is shown, or the sample is refused with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.environments import IDS, with_components
from visenv.errors import ConfigurationError, DataError
from visenv.types import Image, Message, Video

COLORS = ((250, 10, 10), (10, 250, 10), (10, 10, 250))


def colored(number: int) -> Image:
    pixels = np.full((64, 96, 3), COLORS[number], np.uint8)
    return Image.from_pixels(pixels)


def colors_in(messages: Iterable[Message]) -> set[tuple[int, ...]]:
    """Return the colors of the plain images and frames in messages."""
    images: list[Image] = []
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, Image):
            images.append(part)
        elif isinstance(part, Video):
            images += part.frames
    plain = [image.pixels.reshape(-1, 3) for image in images]
    return {
        tuple(int(each) for each in pixels[0]) for pixels in plain if (pixels == pixels[0]).all()
    }


@pytest.mark.parametrize("env_id", with_components(IDS, "torch", "mujoco", "osmesa"))
def test_sample_is_shown_with_all_its_images_or_refused(env_id: str) -> None:
    env = gym.make(env_id, disable_env_checker=True)
    base: Any = env.unwrapped
    env.reset(seed=0)
    sample = base.sample
    given = replace(sample, id="three images", images=tuple(map(colored, range(3))))
    refusal = ""
    try:
        _, info = env.reset(seed=0, options={"sample": given})
    except (DataError, ConfigurationError) as error:
        refusal = str(error).lower()
    finally:
        env.close()
    if refusal:
        assert "image" in refusal or "frame" in refusal
    else:
        assert colors_in(info["step"].messages) >= set(COLORS)
