"""Defines the request to a super-resolution network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from visenv.scorers import ScoreRequest
from visenv.types import Image


@dataclass(frozen=True)
class Magnify(ScoreRequest):
    """Requests an enlarged crop.

    The result is uint8 ``[scale * height, scale * width, 3]``, at the scale of the network.

    Attributes:
        crop: The crop at native size.
    """

    kind: ClassVar[str] = "magnify"
    crop: Image
