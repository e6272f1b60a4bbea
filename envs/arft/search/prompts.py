"""Writes the prompts of ArftSearch: reworded, with the structure of the paper's figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from visenv.grammar.tags import TagGrammar
from visenv.tools import Tool

_SEARCHING = (
    "You answer a question, mostly about an image, that takes facts from elsewhere. Find out one "
    "thing at a time, each by a search of its own, until you know enough to answer.\n\n"
    "{instructions}\n\n"
    "A search engine reads only your query: name in words what the image shows. Do not ask the "
    "same thing twice, and mind names and years that look alike."
)
SEARCH = "Searches for one thing and shows the passages that fit best."
EXAMPLE = "founder of the Kilmore Bridge Company"


def steps(grammar: TagGrammar, tools: Sequence[Tool[Any]]) -> str:
    """Return the instructions for the steps."""
    return _SEARCHING.format(instructions=grammar.instructions(tools))


def snippets(texts: Sequence[str]) -> str:
    """Return results as the public code shows them: numbered, without separators."""
    return "".join(f"{number}. Content:{text}" for number, text in enumerate(texts, start=1))


# ------------------------------------------------------------------ thoughts of the oracle


def wondering(query: str, brief: bool) -> str:
    """Return the oracle's thought before a search."""
    return f" {query} " if brief else f" I have to find out: {query}. "


def knowing(answer: str, brief: bool) -> str:
    """Return the oracle's thought before the answer."""
    return f" {answer} " if brief else f" That is all I have to know: it is {answer}. "
