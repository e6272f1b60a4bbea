"""Identifies image and video processors, so that a sampler and a trainer process images alike."""

from __future__ import annotations

import hashlib
import json
from itertools import zip_longest
from typing import Any


def fingerprint_of(processor: Any) -> str:
    """Return ``"<hash of the settings>:<class>:<backend>"`` of an image or a video processor.

    The class and the backend are part of it because processors with equal settings return other
    pixels: if an image is resized, torchvision and PIL round differently, which changes
    log-probabilities by 4e-4 to 0.13 (measured with the tiny models of `test_families.py`).

    Args:
        processor: A processor of transformers.
    """
    settings = json.dumps(processor.to_dict(), sort_keys=True, default=str)
    digest = hashlib.sha256(settings.encode()).hexdigest()[:16]
    return f"{digest}:{type(processor).__name__}:{getattr(processor, 'backend', '')}"


def same_processor(own: str, other: str) -> bool:
    """Return whether two fingerprints identify the same processors.

    Files of earlier versions contain only the hash of the settings, which is then compared alone.

    Args:
        own: A result of `fingerprint_of`, or two of them (images and videos), joined by ``+``.
        other: The fingerprint of a segment, of any version.
    """
    pairs = zip_longest(own.split("+"), other.split("+"), fillvalue="")
    return all(
        mine == theirs or (":" not in theirs and mine.partition(":")[0] == theirs)
        for mine, theirs in pairs
    )
