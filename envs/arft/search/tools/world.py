"""Defines the tool of ArftSearch, which searches with an engine or in the sample's own world."""

from __future__ import annotations

from typing_extensions import override

from visenv.errors import DataError
from visenv.grammar.foreign import neutralized
from visenv.search import Searcher
from visenv.tools import Store, ToolResult
from visenv.types import Sample

from ...presets import PASSAGES
from .. import prompts
from ..ground_truth import SearchTruth
from ..world import WorldEngine
from .engine import PassageSearch, SearchArguments


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
