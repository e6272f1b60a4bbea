"""Divides the scenes of a procedural world into those of training and held-out ones.

Two seeds can draw the same scene. A world with few scenes therefore draws again until the scene is
one of training, or held out. `is_held_out_scene` decides this from the scene alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

_PARTS = 8
"""One of this number of scenes is held out."""

_MOST_DRAWS = 1_000

SceneT = TypeVar("SceneT")


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
