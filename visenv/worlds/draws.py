"""Draws random items and scenes, and checks ranges of seeds, for procedural worlds.

Two seeds can draw the same scene. A world with few scenes therefore draws again until the scene is
one of training, or held out. `is_held_out_scene` decides this from the scene alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from visenv.errors import ConfigurationError

T = TypeVar("T")
SceneT = TypeVar("SceneT")

_PARTS = 8
"""One of this number of scenes is held out."""

_MOST_DRAWS = 1_000


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Return a random option; unlike `Generator.choice`, do not convert the options to an array."""
    return options[int(rng.integers(len(options)))]


def shuffled(rng: np.random.Generator, options: Sequence[T]) -> list[T]:
    """Return all options in random order."""
    return [options[place] for place in rng.permutation(len(options)).tolist()]


def checked_range(name: str, seeds: Sequence[int], end: int) -> tuple[int, int]:
    """Return a range of seeds, ``[first, end of the range)``.

    Args:
        name: The name of the option, for the error.
        seeds: The two seeds.
        end: The end of all seeds.

    Raises:
        ConfigurationError: If these are not two seeds from 0 to `end`, the first below the second.
    """
    given = tuple(seeds)
    if len(given) == 2 and 0 <= given[0] < given[1] <= end:
        return given
    raise ConfigurationError(
        f"{name} must be two seeds from 0 to {end}, the first below the second; got {given}."
    )


def is_held_out_scene(scene: object) -> bool:
    """Return whether a scene is held out from training.

    Args:
        scene: The values by which scenes are compared, of types whose `repr` shows the value.
    """
    digest = hashlib.blake2b(repr(scene).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % _PARTS == 0


def drawn_scene(
    draw: Callable[[], SceneT],
    held_out: bool,
    *,
    key: Callable[[SceneT], object],
    answer: Callable[[SceneT], object] = lambda _: None,
) -> SceneT:
    """Draw scenes until one is held out, or is a scene of training.

    A preset with a handful of scenes may have none of one kind. After 1,000 draws, any scene is
    returned.

    Args:
        draw: Draws a scene.
        held_out: Whether the scene must be held out.
        key: Returns the values of a scene for `is_held_out_scene`.
        answer: Returns the answer of a scene. All draws after the first must have the same answer,
            so that the division does not change how often each answer is right. This is not needed
            if the values of `key` do not depend on the answer.
    """
    first = scene = draw()
    for _ in range(_MOST_DRAWS):
        if is_held_out_scene(key(scene)) is held_out and answer(scene) == answer(first):
            break
        scene = draw()
    return scene
