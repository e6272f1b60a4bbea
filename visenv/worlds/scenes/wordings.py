"""Words questions about the details of a scene, by kind of detail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

QUESTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "colour": (
        "What colour are the stripes on {sign}?",
        "Which colour do the stripes on {sign} have?",
        "Name the colour of the stripes that are painted on {sign}.",
        "Somebody painted stripes on {sign}. In what colour?",
        "Look for {sign}: what is the colour of its stripes?",
    ),
    "text": (
        "What is written on {sign}?",
        "Read the writing on {sign}.",
        "Which word or number stands on {sign}?",
        "What does it say on {sign}?",
        "Look for {sign}: what can be read on it?",
    ),
    "count": (
        "How many rings are on {sign}?",
        "Count the rings on {sign}.",
        "What is the number of rings on {sign}?",
        "Somebody drew rings on {sign}. How many?",
        "Look for {sign}: how many rings does it show?",
    ),
    "relation": (
        "On {sign}, is the triangle to the left or to the right of the circle?",
        "On which side of the circle is the triangle on {sign}, left or right?",
        "Is the triangle on {sign} left or right of the circle?",
        "Seen from the circle on {sign}, is the triangle on the left or on the right?",
        "Look for {sign}: does its triangle stand left or right of its circle?",
    ),
}
"""Wordings of questions; the first is that of the world of scenes."""
