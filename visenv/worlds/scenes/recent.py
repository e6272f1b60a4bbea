"""Scenes made lately in this process: a group of episodes on one seed pays for one scene."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from visenv.types import Sample

_MOST_BYTES = 256 * 2**20


class RecentSamples:
    """Remembers samples by what made them, up to 256 MiB of pixels.

    A generator that finds its sample here is left in the state that making it would have left.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Sample, dict[str, Any]]] = OrderedDict()
        self._bytes = 0

    def sample(
        self,
        maker: Hashable,
        rng: np.random.Generator,
        make: Callable[[np.random.Generator], Sample],
    ) -> Sample:
        """The sample of that maker and generator state, made where it is not known.

        Args:
            maker: What the sample depends on besides `rng`.
            rng: The generator, advanced as `make` advances it.
            make: Makes the sample.
        """
        key = (maker, repr(rng.bit_generator.state))
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is not None:
            sample, after = found
            rng.bit_generator.state = after
            return sample
        sample = make(rng)
        self._keep(key, sample, dict(rng.bit_generator.state))
        return sample

    def _keep(self, key: Hashable, sample: Sample, after: dict[str, Any]) -> None:
        with self._lock:
            if key in self._kept:  # another thread was quicker
                return
            self._kept[key] = sample, after
            self._bytes += _bytes_of(sample)
            while self._bytes > _MOST_BYTES and len(self._kept) > 1:
                _, (oldest, _) = self._kept.popitem(last=False)
                self._bytes -= _bytes_of(oldest)


def _bytes_of(sample: Sample) -> int:
    return sum(3 * width * height for width, height in (image.size for image in sample.images))


RECENT = RecentSamples()
"""One for the process: environments are many, scenes in use at a time few."""
