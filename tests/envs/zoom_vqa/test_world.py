"""Tests the scenes of ZoomVQA: the default ones vary, those of the main job are unchanged."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from benchmarks import variety
from visenv.data.source import world_version
from visenv.types import Sample
from visenv.worlds.scenes import ScenesWorld
from visenv.worlds.scenes.world import PLACES

pytestmark = pytest.mark.component("opencv")


def source(**options: Any) -> Any:
    base: Any = gym.make("visenv/ZoomVQA-v0", **options).unwrapped
    return base.source


def drawn(world: Any, seeds: int) -> list[Sample]:
    return [world.sample(np.random.default_rng(seed)) for seed in range(seeds)]


def test_default_scenes_have_the_variety_of_those_of_arm() -> None:
    with variety.blank_pictures():
        arm: Any = gym.make("visenv/ArmVQA-v0").unwrapped
        samples = drawn(source(), 200)
        assert [sample.question for sample in samples] == [
            sample.question for sample in drawn(arm.source, 200)
        ]
    assert len({sample.question for sample in samples}) > 150


def test_default_scenes_have_styles_that_no_scene_of_arm_has() -> None:
    looks = {world.preset.style for world in source().world.worlds}
    assert len(looks) == 4
    assert looks.isdisjoint(PLACES)


def test_scenes_of_the_main_job_are_those_of_their_world_to_the_byte() -> None:
    for made, plain in zip(
        drawn(source(preset="tiny"), 3), drawn(ScenesWorld("tiny"), 3), strict=True
    ):
        assert made == plain
        assert made.images[0].pixels.tobytes() == plain.images[0].pixels.tobytes()


def test_version_counts_the_worlds_that_changed() -> None:
    assert world_version(source()) == 2
    assert world_version(source(preset="tiny")) == 1
    assert world_version(source(scenes={"style": "night"})) == 1
