"""Provides a few worlds, with many questions about each."""

from __future__ import annotations

import numpy as np
import pytest

from visenv.envs.arft.search.world import EntitiesWorld
from visenv.types import Sample


@pytest.fixture(scope="session")
def asked() -> dict[str, list[Sample]]:
    """Return 240 samples of three worlds for each preset."""
    samples = {}
    for preset in ("default", "tiny"):
        rng = np.random.default_rng(5)
        world = EntitiesWorld(preset, worlds=(40, 43))
        samples[preset] = [world.sample(rng) for _ in range(240)]
    return samples
