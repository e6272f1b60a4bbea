"""Defines the two spaces of all visenv environments: any text, and RGB images of any size.

They are subclasses of `gymnasium.Space`, because Gymnasium's own `Text` has only alphanumeric
characters, takes milliseconds to check a long turn, and becomes stale without a warning in a vector
environment with shared memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.types import Pixels

_ALPHABET = np.array(list("abcdefghijklmnopqrstuvwxyz 0123456789<>/{}[]:,.\n\té漢🙂"))


class Unicode(gym.Space[str]):
    """Contains all Python strings.

    `sample` returns short strings (at most `sample_length` characters) that include tags, digits
    and non-ASCII characters.
    """

    def __init__(self, sample_length: int = 64, seed: int | None = None) -> None:
        self.sample_length = sample_length
        super().__init__(shape=None, dtype=None, seed=seed)

    @override
    def sample(self, mask: None = None, probability: None = None) -> str:
        """Return a random string of 0 to `sample_length` characters."""
        length = int(self.np_random.integers(0, self.sample_length + 1))
        return "".join(self.np_random.choice(_ALPHABET, size=length))

    @override
    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string."""
        return isinstance(x, str)

    @property
    @override
    def is_np_flattenable(self) -> bool:
        """Return False: strings have no array form of a fixed size."""
        return False

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode) and self.sample_length == other.sample_length

    @override
    def __hash__(self) -> int:
        return hash((Unicode, self.sample_length))

    @override
    def __repr__(self) -> str:
        return "Unicode()"

    @override
    def to_jsonable(self, sample_n: Iterable[str]) -> list[str]:
        """Return the strings unchanged, because strings are JSON."""
        return list(sample_n)

    @override
    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        return [str(text) for text in sample_n]


class RgbImage(gym.Space[Pixels]):
    """Contains RGB images of any size: uint8 ``[height, width, 3]`` with at least one pixel.

    `sample` returns noise images with sides of at most `sample_side` pixels.
    """

    def __init__(self, sample_side: int = 32, seed: int | None = None) -> None:
        self.sample_side = sample_side
        super().__init__(shape=None, dtype=np.uint8, seed=seed)

    @override
    def sample(self, mask: None = None, probability: None = None) -> Pixels:
        height, width = self.np_random.integers(1, self.sample_side + 1, size=2)
        noise: NDArray[np.uint8] = self.np_random.integers(
            0, 256, size=(int(height), int(width), 3), dtype=np.uint8
        )
        return noise

    @override
    def contains(self, x: Any) -> bool:
        """Return whether `x` is a non-empty uint8 RGB array."""
        return (
            isinstance(x, np.ndarray)
            and x.dtype == np.uint8
            and x.ndim == 3
            and x.shape[2] == 3
            and x.size > 0
        )

    @property
    @override
    def is_np_flattenable(self) -> bool:
        """Return False: images of any size have no flat form of a fixed size."""
        return False

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, RgbImage) and self.sample_side == other.sample_side

    @override
    def __hash__(self) -> int:
        return hash((RgbImage, self.sample_side))

    @override
    def __repr__(self) -> str:
        return "RgbImage()"

    @override
    def to_jsonable(self, sample_n: Iterable[Pixels]) -> list[Any]:
        """Return nested lists of integers."""
        return [image.tolist() for image in sample_n]

    @override
    def from_jsonable(self, sample_n: list[Any]) -> list[Pixels]:
        return [np.asarray(image, np.uint8) for image in sample_n]


def observation_space() -> gym.spaces.Dict:
    """Return ``Dict(text=Unicode, images=Sequence(RgbImage))``, the space of all observations."""
    images = gym.spaces.Sequence(RgbImage(), stack=False)
    return gym.spaces.Dict({"text": Unicode(), "images": images})
