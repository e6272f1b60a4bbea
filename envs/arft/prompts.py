"""Writes the prompts that both ARFT environments share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from visenv.types import Image, Message

PromptStyle = Literal["full", "brief"]

ANSWER_NOW = "\nThis is your last turn. Give your final answer now, inside <answer></answer> tags."
WITHOUT_TOOLS = (
    "Answer the question. Reason inside <think> </think> tags, then write your final answer, as "
    "short as it can be, inside <answer> </answer> tags. You have no tools."
)
"""The instructions of the control without tools."""

NO_STEP_LEFT = "No step is left in this episode: answer inside <answer></answer> tags."


def opening(
    style: PromptStyle, steps: str, views: Sequence[Image], facts: str, question: str
) -> list[Message]:
    """Return the first messages of an episode.

    ``"full"`` explains the steps in a system message and asks the question in a user message.
    ``"brief"`` contains only the images and the question, for a model that is so small that it
    learns the form from examples.

    Args:
        style: ``"full"`` or ``"brief"``.
        steps: The explanation of the steps.
        views: The images as they are shown; empty for text-only data sets.
        facts: Facts about the images, or ``""``.
        question: The question.
    """
    head = "\n" if views else ""
    if style == "brief":
        return [Message("user", (*views, f"{head}{question}"))]
    asked = f"{head}{facts}Question: {question}"
    return [Message("system", (steps,)), Message("user", (*views, asked))]


def task(style: PromptStyle, steps: str, question: str) -> str:
    """Return the whole task as one text, which the public code places before the conversation."""
    if style == "brief":
        return question
    return f"{steps}\n\n<query> {question} </query>\n\nWhat you have said so far:"
