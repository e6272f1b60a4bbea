"""Tests the cache of recently made scenes: equal samples and generator states, bounded memory."""

from __future__ import annotations

import numpy as np

from visenv.types import Image, Sample
from visenv.worlds.recent import RecentSamples
from visenv.worlds.scenes import ScenesWorld


def test_group_shares_one_scene_and_the_generator_continues_as_if_it_had_drawn_it() -> None:
    world = ScenesWorld("tiny")
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    made, found = world.sample(first), ScenesWorld("tiny").sample(second)
    assert made is found
    assert first.random() == second.random()


def test_scene_depends_on_preset_and_state() -> None:
    world, harder = ScenesWorld("tiny"), ScenesWorld("tiny", grain=3)
    made = world.sample(np.random.default_rng(5))
    assert world.sample(np.random.default_rng(6)) is not made
    assert harder.sample(np.random.default_rng(5)) is not made


def test_old_samples_are_forgotten() -> None:
    recent, calls = RecentSamples(), []

    def make(rng: np.random.Generator) -> Sample:
        calls.append(float(rng.random()))
        pixels = np.zeros((4096, 8192, 3), np.uint8)  # 96 MiB: two fit into 256 MiB, three do not
        return Sample(str(calls[-1]), "?", (Image.from_pixels(pixels),))

    for seed in (1, 2, 3, 3, 2, 1):
        recent.sample("maker", np.random.default_rng(seed), make)
    assert len(calls) == 4  # the second and third were kept, the first was dropped
