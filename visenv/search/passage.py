"""Defines the results of a search, and the interface of engines."""

from __future__ import annotations

from typing import NamedTuple, Protocol

LONGEST_QUERY = 500
"""Characters of a query that are used; web engines refuse much more."""


class Passage(NamedTuple):
    """Holds one result.

    Attributes:
        title: Of the page or article.
        text: The passage, or the snippet that a web engine shows.
        url: Where it is from; ``""`` in a corpus without addresses.
    """

    title: str
    text: str
    url: str = ""


class Searcher(Protocol):
    """An engine. It may be used from several threads, and pickles.

    Attributes:
        name: Names the engine and all that decides its answers, for caches and reports.
    """

    name: str

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the best passages for a query, best first; nothing if none fits.

        Args:
            query: Any text; what is beyond `LONGEST_QUERY` characters is not used.
            count: Most passages, from 1.

        Raises:
            ServiceError: If the engine failed beyond its retries.
        """
        ...

    def close(self) -> None:
        """Release what the engine holds; a later search opens it again."""
        ...


def cleaned(query: str) -> str:
    """Return a query for an engine: valid Unicode, no control characters, not too long."""
    encodable = query.encode("utf-8", "replace").decode("utf-8")
    printable = "".join(each if each.isprintable() else " " for each in encodable)
    return " ".join(printable.split())[:LONGEST_QUERY]
