"""Writes the prompts of ArftCoding: reworded, with the structure of the paper's figure 6."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from visenv.grammar.tags import TagGrammar
from visenv.sandbox import INPUT_IMAGE, OUTPUT_IMAGE
from visenv.tools import Tool

from .world import LABELS

_CODING = (
    "You answer a question about an image that may have something wrong with it. First name what "
    "is wrong. Unless it is nothing, then repair the image by Python code with OpenCV, in one "
    "program or several, one after the other. Then answer the question from what you see.\n\n"
    "{instructions}\n\n"
    f"Every program reads the image from '{INPUT_IMAGE}' and writes the changed one to "
    f"'{OUTPUT_IMAGE}', always under these names. You are shown what it wrote, and the next "
    "program finds that under the first name. An image may be shown to you smaller than it is; "
    "programs work on all of its pixels, so that a part that you cut out is shown larger."
)
_NAMES = {
    "rotation90": "turned by 90 degrees",
    "rotation180": "upside down",
    "dark": "too dark",
    "overexposure": "too bright",
    "blur": "blurred",
    "noise": "noisy",
    "crop": "sound, but the part that the question is about has to be cut out to be seen well",
    "none": "sound",
}

PROBLEM = "Says what is wrong with the image. The labels: {}.".format(
    "; ".join(f"'{label}' ({_NAMES[label]})" for label in LABELS)
)
EXAMPLE = f"""import cv2

image = cv2.imread("{INPUT_IMAGE}")
image = cv2.convertScaleAbs(image, alpha=1.2)
cv2.imwrite("{OUTPUT_IMAGE}", image)"""
CODE = "Runs one Python program on the image and shows what it writes, or why it failed."


def steps(grammar: TagGrammar, tools: Sequence[Tool[Any]]) -> str:
    """Return the instructions for the steps."""
    return _CODING.format(instructions=grammar.instructions(tools))


def file_size(size: tuple[int, int]) -> str:
    """Return a line with the size of the image file; `size` is ``(width, height)`` in pixels."""
    return f"The image file is {size[0]} pixels wide and {size[1]} high.\n"


def with_region(question: str, box: Sequence[int] | None) -> str:
    """Return the question followed by its box, unless the question contains four numbers."""
    if box is None or re.search(r"\[\s*\d+(?:\s*,\s*\d+){3}\s*\]", question):
        return question
    return f"{question} It is within {list(box)}, in thousandths of the image's width and height."


def next_step(labels: Sequence[str]) -> str:
    """Return the instruction that follows named problems, whether or not they are right."""
    if list(labels) == ["none"]:
        return "Nothing needs to be repaired. Answer the question."
    if "crop" in labels:
        return "Now write a program that cuts out the part that the question is about."
    return f"Now write a program that repairs this: {', '.join(labels)}."


# ------------------------------------------------------------------ thoughts of the oracle

_LOOKS = {"rotation180": "upside down", "rotation90": "turned", "none": "fine"}


def looked(problems: Sequence[str], brief: bool) -> str:
    """Return the oracle's thought about the problems of the image."""
    if brief:
        return f" {', '.join(_LOOKS.get(label, label) for label in problems)} "
    return f" The image is {' and '.join(_NAMES[label] for label in problems)}. "


def repairing(brief: bool) -> str:
    """Return the oracle's thought before a program."""
    return " repair " if brief else " I repair that, and look again. "


def seen(brief: bool) -> str:
    """Return the oracle's thought before the answer."""
    return " now clear " if brief else " Now I can see what the question asks about. "


def unseen(brief: bool) -> str:
    """Return the thought of a player that gives up."""
    return " not clear " if brief else " I still cannot see what the question asks about. "
