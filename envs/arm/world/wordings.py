"""Words statements about the details of a scene, by kind of detail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STATEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "colour": (
        "The stripes on {sign} are {answer}.",
        "On {sign} I see {answer} stripes.",
        "They are {answer}: that is the colour of the stripes on {sign}.",
        "Looking closely at {sign}, its stripes are painted {answer}.",
    ),
    "text": (
        'The writing on {sign} is "{answer}".',
        'On {sign} it says "{answer}".',
        'It reads "{answer}", in outlined letters on {sign}.',
        'Looking closely at {sign}, one can read "{answer}".',
    ),
    "count": (
        "The number of rings on {sign} is {answer}.",
        "Rings on {sign}: {answer}.",
        "I counted the rings on {sign} and came to {answer}.",
        "Looking closely at {sign}, the rings add up to {answer}.",
    ),
    "relation": (
        "On {sign}, the triangle is to the {answer} of the circle.",
        "The triangle on {sign} stands on the {answer}, the circle beside it.",
        "To the {answer}: that is where the triangle on {sign} is, seen from the circle.",
        "Looking closely at {sign}, the triangle comes to the {answer} of the circle.",
    ),
}
"""Wordings of statements of an answer."""
