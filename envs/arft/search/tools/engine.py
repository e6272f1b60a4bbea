"""Defines a search tool for any engine of `visenv.search`."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ConfigurationError, ToolError
from visenv.search.corpus import LONGEST_QUERY, Passage, Searcher
from visenv.tools.base import Arguments, Store, Tool, ToolResult, shown

from ...presets import PASSAGES

_TITLE_CHARACTERS = 200
_TEXT_CHARACTERS = 1000


class SearchArguments(Arguments):
    """Holds the arguments of a search."""

    query: Annotated[
        str, Field(min_length=1, max_length=LONGEST_QUERY, description="What to look for.")
    ]


class PassageSearch(Tool[SearchArguments]):
    """Shows the passages that match a query best.

    Args:
        searcher: The engine.
        passages: Maximum number of shown passages.

    Raises:
        ConfigurationError: If `passages` is below 1.
    """

    name = "search"
    description = "Searches for passages of text about a query and shows the best ones."
    arguments = SearchArguments

    def __init__(self, searcher: Searcher, *, passages: int = PASSAGES) -> None:
        if passages < 1:
            raise ConfigurationError(f"passages must be at least 1, got {passages!r}.")
        self.searcher = searcher
        self.passages = passages

    @override
    def call(self, arguments: SearchArguments, store: Store) -> ToolResult:
        """Search; the result's ``detail`` contains ``query`` and the passages' ``titles``.

        Raises:
            ToolError: If nothing matches.
            ServiceError: If the engine failed after all retries.
        """
        found = self.searcher.search(arguments.query, self.passages)
        if not found:
            raise ToolError(f"Nothing was found for {shown(arguments.query)}. Try other words.")
        text = "\n".join(_listed(number, each) for number, each in enumerate(found, start=1))
        detail = {"query": arguments.query, "titles": [each.title for each in found]}
        return ToolResult((text,), detail)

    @override
    def close(self) -> None:
        """Leave the engine open, because it is shared."""

    @override
    def example(self) -> SearchArguments:
        return SearchArguments(query="founder of the company that built the bridge")

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> SearchArguments:
        """Return a query of one random word."""
        return SearchArguments(query=str(rng.choice(["who", "where", "year", "founder", "city"])))


def _listed(number: int, passage: Passage) -> str:
    title = passage.title[:_TITLE_CHARACTERS]
    return f"{number}. {title}: {passage.text[:_TEXT_CHARACTERS]}"
