"""This module defines the texts that a family passes to the baseline policies."""

from __future__ import annotations

from typing import NamedTuple


class BaselinePrompts(NamedTuple):
    """Holds the instructions that a baseline gives to the policy that it wraps.

    Attributes:
        answer: The instruction to answer immediately.
        reason: The instruction to think first and then answer.
        look: The instruction to look before the answer: to describe the image before a search, or
            to answer and to name a box before a second look.
    """

    answer: str
    reason: str
    look: str
