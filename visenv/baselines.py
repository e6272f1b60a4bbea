"""The texts that a family gives to the baseline policies."""

from __future__ import annotations

from typing import NamedTuple


class BaselinePrompts(NamedTuple):
    """What a baseline says to the policy that it wraps.

    Attributes:
        answer: To answer at once.
        reason: To think, and then to answer.
        look: To look before the answer: to say what the image shows, before a search; or to answer
            and to name a box, before a second look.
    """

    answer: str
    reason: str
    look: str
