"""Refers to one sign among others in a question: by its look, its position, or another sign."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from visenv.worlds.draws import pick
from visenv.worlds.scenes.truth import SignTruth

_NEARER = 0.8
"""Maximum ratio of the distances to the nearest and to the second nearest sign."""

_APART = 0.5
"""Minimum lead of the sign that is farthest to a side, relative to its own width."""


def refer(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return a phrase that matches only the first of the signs.

    Args:
        rng: Draws one of the possible phrases.
        signs: All signs of a scene, with different looks; a single one is ``"the sign"``.
    """
    if len(signs) == 1:
        return "the sign"
    ways = [_by_look, _beside, _beside, _by_part, _by_place, _by_nearness]  # often beside another
    return pick(rng, ways)(rng, signs) or _by_look(rng, signs)


def _by_look(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    return signs[0].name


def _beside(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return the look of the sign, and its position relative to another sign."""
    asked, other = signs[0], pick(rng, signs[1:])
    (x, y), (other_x, other_y) = _middle(asked), _middle(other)
    if abs(x - other_x) >= abs(y - other_y):
        side = "to the left of" if x < other_x else "to the right of"
    else:
        side = "above" if y < other_y else "below"
    return f"{asked.name} {side} {other.name}"


def _by_part(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return the frame or the shape of a sign alone, if no other sign has the same."""
    asked, others = signs[0], signs[1:]
    parts = [f"the {asked.frame} sign"] * all(each.frame != asked.frame for each in others)
    parts += [f"the {asked.shape} sign"] * all(each.shape != asked.shape for each in others)
    return pick(rng, parts) if parts else ""


def _by_place(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return a phrase with the edge of the image to which the sign is the nearest of all."""
    asked, others = _middle(signs[0]), [_middle(each) for each in signs[1:]]
    margin = _APART * (signs[0].box[2] - signs[0].box[0])
    sides: list[tuple[str, Callable[[tuple[float, float]], float]]] = [
        ("the sign farthest to the left", lambda place: -place[0]),
        ("the sign farthest to the right", lambda place: place[0]),
        ("the uppermost sign", lambda place: -place[1]),
        ("the lowermost sign", lambda place: place[1]),
    ]
    fitting = [
        words for words, far in sides if far(asked) > max(far(each) for each in others) + margin
    ]
    return pick(rng, fitting) if fitting else ""


def _by_nearness(rng: np.random.Generator, signs: Sequence[SignTruth]) -> str:
    """Return a phrase with a sign to which this sign is the nearest, if there is one."""
    asked = signs[0]
    near = [
        other
        for other in signs[1:]
        if all(
            _distance(asked, other) <= _NEARER * _distance(third, other)
            for third in signs[1:]
            if third is not other
        )
    ]
    return f"the sign nearest to {pick(rng, near).name}" if near and len(signs) > 2 else ""


def _middle(sign: SignTruth) -> tuple[float, float]:
    left, top, right, bottom = sign.box
    return (left + right) / 2, (top + bottom) / 2


def _distance(one: SignTruth, other: SignTruth) -> float:
    return float(np.hypot(*np.subtract(_middle(one), _middle(other))))
