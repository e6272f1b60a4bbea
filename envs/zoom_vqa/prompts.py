"""Writes the prompts of ZoomVQA: reworded, with the structure of the paper (appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from visenv.grammar import KeyValueGrammar, ToolCallGrammar
from visenv.tools import Tool
from visenv.types import Image, Message

from .tools import INPUT_IMAGE

PromptStyle = Literal["full", "brief"]

FIRST_PREFIX = "<think> Let me go through this step by step."
LATER_PREFIX = "<think>"


def opening(
    style: PromptStyle,
    question: str,
    view: Image,
    grammar: KeyValueGrammar | ToolCallGrammar,
    tools: Sequence[Tool[Any]],
    tool_calls: int,
) -> list[Message]:
    """Return the first messages of an episode.

    ``"full"`` explains the tools in a system message and the task in a user message, as the paper
    does. ``"brief"`` contains only the image and the question, for a model that is so small that it
    learns the format from examples and uses its context for pixels.
    """
    named = f"<image_name> {INPUT_IMAGE} </image_name>\n"
    if style == "brief":
        return [Message("user", (named, view, f"\n{question}"))]
    width, height = view.size
    task = (
        f"\nThe image is ({width}, {height}) pixels, width first.\n"
        "Think the question through with care, and check your answer as you think. Gather the "
        "visual evidence that your answer rests on before you give it. Inside the <answer> "
        "</answer> tags write one word or one short phrase that answers the question directly.\n"
        f"Question: {question}"
    )
    system = Message("system", (_rules(grammar, tools, tool_calls),))
    return [system, Message("user", (named, view, task))]


def first_prefix(style: PromptStyle) -> str:
    """Return the beginning of the first turn; the paper's bootstrap opens a thought."""
    return FIRST_PREFIX if style == "full" else LATER_PREFIX


# ------------------------------------------------------------------ thoughts of the oracle


def looking(style: PromptStyle) -> str:
    """Return the oracle's thought before it zooms in."""
    return " look closer " if style == "brief" else " The detail is too small; I zoom in on it. "


def looked(style: PromptStyle) -> str:
    """Return the oracle's thought before it answers."""
    return " now clear " if style == "brief" else " The crop shows it clearly enough to answer. "


def _rules(
    grammar: KeyValueGrammar | ToolCallGrammar, tools: Sequence[Tool[Any]], tool_calls: int
) -> str:
    if not tool_calls:
        return (
            "Reason inside <think> tags, then give your final answer inside <answer> tags. "
            "You have no tools."
        )
    times = "once" if tool_calls == 1 else f"{tool_calls} times"
    return (
        f"Tools can help you with this problem. You may use them {times} in all:\n\n"
        f"{grammar.instructions(tools)}"
    )
