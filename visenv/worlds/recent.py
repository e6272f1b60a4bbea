"""Samples made lately in this process: a group of episodes with one seed makes one scene."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from visenv.cache import SharedCache
from visenv.types import Sample

_MOST_BYTES = 256 * 2**20


class RecentSamples:
    """Remembers samples by what made them, up to 256 MiB of pixels.

    A generator whose sample is found here is left in the state that making it would have left.
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
        """Return the sample of that maker and generator state, and make it if it is not known.

        Args:
            maker: What the sample depends on besides `rng`.
            rng: The generator, advanced as `make` advances it.
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
"""The one of this process: there are many environments, and few scenes in use at a time."""
