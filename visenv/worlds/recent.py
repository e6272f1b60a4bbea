"""Caches recent samples of this process, because the episodes of a group share one scene."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from visenv.cache import SharedCache
from visenv.types import Sample

_MOST_BYTES = 256 * 2**20

SAMPLES_AT_ONCE = 64
"""Number of samples that several players play before any of them plays the next ones: the scenes of
the main job that the cache holds. Each scene is then drawn once."""


class RecentSamples:
    """Caches samples by the state that generated them, up to 256 MiB of pixels.

    If a sample is in the cache, the generator is set to the state that it has after making the
    sample.
    """

    def __init__(self) -> None:
        self._known: SharedCache[Hashable, tuple[Sample, dict[str, Any]]] = SharedCache(
            _MOST_BYTES, _bytes_of
        )

    def sample(
        self,
        maker: Hashable,
        rng: np.random.Generator,
        make: Callable[[np.random.Generator], Sample],
    ) -> Sample:
        """Return the sample of that maker and generator state; make it if it is not in the cache.

        Args:
            maker: A key for everything that the sample depends on, except `rng`.
            rng: The generator; it is advanced as `make` advances it.
            make: Makes the sample.
        """

        def made() -> tuple[Sample, dict[str, Any]]:
            return make(rng), dict(rng.bit_generator.state)

        sample, after = self._known.get((maker, repr(rng.bit_generator.state)), made)
        rng.bit_generator.state = after
        return sample


def _bytes_of(known: tuple[Sample, dict[str, Any]]) -> int:
    sizes = [image.size for image in known[0].images]
    return sum(3 * width * height for width, height in sizes)


RECENT = RecentSamples()
"""The cache of this process, shared by its environments, which use few scenes at a time."""
