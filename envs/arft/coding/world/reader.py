"""Reads one line of text: finds ink by its contrast, cuts it into letters, and names each letter.

The reader represents a viewer that does not process the image. Ink must differ from its ground by
`CONTRAST` levels, letters must be upright and separate, and each must look like a letter of the
font (`visenv.envs.arft.coding.world.lettering`). Therefore it does not read a dark, blurred, noisy
or rotated line, even if the line can be restored.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from visenv.types import Pixels

from .lettering import glyph

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
CONTRAST = 40.0
"""Minimum difference in levels between ink and its ground."""

_ALIKE = str.maketrans("OQDI", "0001")
"""Maps letters to similar ones, because only the context distinguishes them."""
_WORKING_HEIGHT = 64
_SMALLEST = 0.002
"""Minimum area of a piece of ink, relative to the square of the line's height."""
_LIKENESS = 0.62
_SIDE = 16

Floats = NDArray[np.float32]


def share_read(line: Pixels, text: str) -> float:
    """Return the share of a text's letters that are read on a line, in order, 0 to 1.

    Blanks do not count. Letters that are not in the text lower the share: 1 is the exact text.
    """
    given, wanted = read(line).translate(_ALIKE), text.replace(" ", "").translate(_ALIKE)
    return LCSseq.similarity(given, wanted) / max(len(given), len(wanted))


def read(line: Pixels) -> str:
    """Return the text of a line, without blanks; ``""`` if nothing is recognized.

    Args:
        line: uint8 ``[height, width, 3]``; the ground has one color, and the ink is darker.
    """
    ink = _ink(line)
    return "" if ink is None else "".join(map(_named, _letters(ink)))


def _ink(line: Pixels) -> NDArray[np.uint8] | None:
    """Return a mask of the ink, enlarged to the working height; None without contrast."""
    from visenv.opencv import cv2

    levels = line.astype(np.float32).mean(axis=2)
    scale = _WORKING_HEIGHT / len(levels)
    size = max(1, round(levels.shape[1] * scale)), _WORKING_HEIGHT
    levels = np.asarray(cv2.resize(levels, size, interpolation=cv2.INTER_CUBIC), np.float32)
    dark, light = np.percentile(levels, (4, 75))
    if light - dark < CONTRAST:
        return None
    return np.asarray(levels < (dark + light) / 2, np.uint8)


def _letters(ink: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """Return the pieces of ink from left to right; pieces above each other count as one."""
    from visenv.opencv import cv2

    _, labels, boxes, _ = cv2.connectedComponentsWithStats(ink, connectivity=8)
    area = _SMALLEST * _WORKING_HEIGHT**2
    pieces = [
        (int(box[0]), int(box[0] + box[2]), k)
        for k, box in enumerate(boxes)
        if k and box[4] >= area
    ]
    groups: list[tuple[int, int, list[int]]] = []
    for left, right, label in sorted(pieces):
        if groups and left < groups[-1][1] - 2:
            first, last, members = groups.pop()
            groups.append((first, max(last, right), [*members, label]))
        else:
            groups.append((left, right, [label]))
    return [
        np.isin(labels[:, left:right], members).astype(np.uint8) for left, right, members in groups
    ]


def _named(letter: NDArray[np.uint8]) -> str:
    """Return the most similar letter of the alphabet; ``"?"`` if none is similar enough."""
    rows = np.flatnonzero(letter.any(axis=1))
    likeness = _templates() @ _features(letter[rows[0] : rows[-1] + 1] * np.uint8(255)).ravel()
    best = int(likeness.argmax())
    return ALPHABET[best] if likeness[best] >= _LIKENESS else "?"


@cache
def _templates() -> Floats:
    return np.stack([_features(glyph(letter, _WORKING_HEIGHT)).ravel() for letter in ALPHABET])


def _features(letter: Pixels) -> Floats:
    """Return a letter, scaled to fit a square of `_SIDE` pixels, with mean 0 and norm 1."""
    from visenv.opencv import cv2

    height, width = letter.shape
    square = np.zeros((max(height, width),) * 2, np.float32)
    top, left = (len(square) - height) // 2, (len(square) - width) // 2
    square[top : top + height, left : left + width] = letter
    small = np.asarray(cv2.resize(square, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA), np.float32)
    small = np.asarray(cv2.GaussianBlur(small, (3, 3), 0.8), np.float32)
    small -= small.mean()
    return np.asarray(small / (np.linalg.norm(small) + 1e-6), np.float32)
