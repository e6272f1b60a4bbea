"""Defines `FixedSamples`, a procedural world as a finite source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from visenv.data.source import ProceduralSource, world_version
from visenv.errors import ConfigurationError
from visenv.presets import check_count
from visenv.types import Sample


class FixedSamples:
    """Provides the samples of a procedural world for given seeds, as an `IndexedSource`.

    Each sample equals the sample of an environment with this world after ``reset(seed=seed)``::

        FixedSamples(MagsWorld("complex"), range(20))

    Args:
        world: The procedural world that makes the samples.
        seeds: One seed for each sample, a whole number of at least 0.

    Raises:
        ConfigurationError: If there is no seed, a seed occurs twice, or a seed is invalid.
    """

    def __init__(self, world: ProceduralSource, seeds: Sequence[int]) -> None:
        if not seeds or len({*seeds}) < len(seeds):
            raise ConfigurationError(
                f"FixedSamples needs at least one seed, each only once, got {list(seeds)[:20]}."
            )
        for seed in seeds:
            check_count("seed", seed, least=0)
        self.world = world
        self.seeds = tuple(seeds)
        self.world_version = world_version(world)
        declared = getattr(world, "ground_truth", None)
        if declared is not None:
            self.ground_truth = declared

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.seeds)

    def __getitem__(self, index: int) -> Sample:
        """Return the sample of the seed at `index`."""
        return self.world.sample(np.random.default_rng(self.seeds[index]))
