"""Defines the tool of ArftSearch, which searches with an engine or in the sample's own world."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field
from typing_extensions import override

from visenv.errors import ConfigurationError, DataError, ToolError
from visenv.grammar.foreign import neutralized
from visenv.search.corpus import LONGEST_QUERY, Passage, Searcher
from visenv.tools.base import Arguments, Store, Tool, ToolResult, shown
from visenv.types import Sample

from ..presets import PASSAGES
from . import prompts
from .ground_truth import SearchTruth
from .world import WorldEngine

__all__ = ["PassageSearch", "SearchArguments", "SearchTool", "SnippetTool"]

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


class SearchTool(PassageSearch):
    """Shows the passages that match a query best.

    Args:
        searcher: The engine; None searches the world of the sample.
        passages: Maximum number of shown passages.

    Raises:
        ConfigurationError: If `passages` is below 1.
    """

    description = prompts.SEARCH

    def __init__(self, searcher: Searcher | None = None, *, passages: int = PASSAGES) -> None:
        super().__init__(WorldEngine() if searcher is None else searcher, passages=passages)
        self._own_world = searcher is None

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        """Select the sample's world.

        Raises:
            DataError: If the sample has no world.
        """
        if not self._own_world:
            return
        world = sample.truth_as(SearchTruth).world
        if world is None:
            raise DataError(
                f"Sample {sample.id!r} has no world of articles: pass an engine, for "
                "example search='words:<index>'."
            )
        self.searcher = WorldEngine(world.preset, world.seed)

    @override
    def close(self) -> None:
        """Close the world of the sample; an engine of the person is shared and stays open."""
        if self._own_world:
            self.searcher.close()

    @override
    def example(self) -> SearchArguments:
        """Return an example query that names its subject."""
        return SearchArguments(query=prompts.EXAMPLE)


class SnippetTool(SearchTool):
    """Shows results as the public code does, and an empty text if nothing is found.

    Args:
        searcher: See `SearchTool`.
        passages: See `SearchTool`.
        characters: Maximum length of all passages together.
    """

    def __init__(
        self, searcher: Searcher | None = None, *, passages: int = PASSAGES, characters: int
    ) -> None:
        super().__init__(searcher, passages=passages)
        self.characters = characters

    @override
    def call(self, arguments: SearchArguments, store: Store) -> ToolResult:
        """Search; ``detail`` contains ``query``, the passages' ``titles`` and the ``shown`` text.

        Raises:
            ServiceError: If the engine failed after all retries.
        """
        found = self.searcher.search(arguments.query, self.passages)
        text = neutralized(prompts.snippets([each.text for each in found]))[: self.characters]
        titles = [each.title for each in found]
        return ToolResult((text,), {"query": arguments.query, "titles": titles, "shown": text})
