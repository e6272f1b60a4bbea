"""Writes the prompts of the environments for plain questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from visenv.grammar import ToolCallGrammar
from visenv.tools import Tool
from visenv.types import Image, Message, Sample

from .prompts import PromptStyle, named_images

ANSWER_NOW = "\nYou have no tool calls left. Give your answer now, inside <answer></answer> tags."


def opening(
    style: PromptStyle,
    sample: Sample,
    images: Mapping[str, Image],
    document: str,
    note: str,
    grammar: ToolCallGrammar,
    tools: Sequence[Tool[Any]],
    turns: int,
) -> list[Message]:
    """Return the first messages of an episode.

    ``"full"`` explains tools and answer format in a system message, and asks the question in a user
    message. ``"brief"`` contains only the images, the name of the document and the question, for a
    model that is so small that it learns the format from examples.

    Args:
        style: ``"full"`` or ``"brief"``.
        sample: The sample with the question.
        images: The shown images, by logical name.
        document: The document's name, or ``""``.
        note: The data set's note about its answers, or ``""``.
        grammar: Writes the instructions.
        tools: The available tools.
        turns: Number of turns of the episode.
    """
    shown = named_images(images)
    if style == "brief":
        asked = f"{document}\n{sample.question}" if document else sample.question
        return [Message("user", (*shown, asked))]
    system = Message("system", (_role(document, grammar, tools),))
    task = _task(sample, document, note, list(images), tools, turns)
    return [system, Message("user", (*shown, task))]


def _role(document: str, grammar: ToolCallGrammar, tools: Sequence[Tool[Any]]) -> str:
    what = "documents" if document else "images"
    look = "Look with the tools before you answer.\n\n" if tools else ""
    return f"You answer questions about {what}. {look}{grammar.instructions(tools)}"


def _task(
    sample: Sample,
    document: str,
    note: str,
    images: Sequence[str],
    tools: Sequence[Tool[Any]],
    turns: int,
) -> str:
    parts = [
        f"<start_of_question>\n{sample.question}\n<end_of_question>",
        _about(document, images),
        _turns(turns, images, tools),
        note,
        "End with the answer alone, as short as possible, in this form: <answer>…</answer>",
    ]
    return "\n\n".join(part for part in parts if part)


def _about(document: str, images: Sequence[str]) -> str:
    if document:
        return (
            f"The question is about the document {document!r}. The image {images[0]} is an "
            "overview of all its pages: they are numbered from 1, left to right, then top to "
            "bottom."
        )
    return f"The question is about {', '.join(images)}." if images else ""


def _turns(turns: int, images: Sequence[str], tools: Sequence[Tool[Any]]) -> str:
    if not tools:
        return ""
    named = "image" in {name for tool in tools for name in tool.arguments.model_fields}
    names = f" Images have names that the tools take: {', '.join(images)}." if named else ""
    return (
        f"You have {turns} turns, the last one without tools. A call that fails may be made again."
        f"{names}"
    )


def looked(style: PromptStyle, answer: str) -> str:
    """Return the oracle's thought before it answers."""
    return f" {answer} " if style == "brief" else " I have seen enough to answer. "
