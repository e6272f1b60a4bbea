"""Defines the results of a search, and the interface of engines."""

from __future__ import annotations

from typing import NamedTuple, Protocol

LONGEST_QUERY = 500
"""Maximum number of characters of a query that are used; web engines refuse much longer queries."""


class Passage(NamedTuple):
    """Holds one result of a search.

    Attributes:
        title: Title of the page or article.
        text: The passage, or the snippet of a web engine.
        url: The address of the result; ``""`` in a corpus without addresses.
    """

    title: str
    text: str
    url: str = ""


class Searcher(Protocol):
    """Represents a search engine. It can be used from several threads, and pickled.

    Attributes:
        name: Name of the engine and of all settings that affect its answers, for caches and
            reports.
    """

    name: str

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the best passages for a query, best first; an empty list if there are none.

        Args:
            query: Any text; characters beyond `LONGEST_QUERY` are not used.
            count: Maximum number of passages, at least 1.

        Raises:
            ServiceError: If the engine failed beyond its retries.
        """
        ...

    def close(self) -> None:
        """Release the resources of the engine; a later search opens it again."""
        ...


def cleaned(query: str) -> str:
    """Return a query for an engine: valid Unicode, no control characters, not too long."""
    encodable = query.encode("utf-8", "replace").decode("utf-8")
    printable = "".join(each if each.isprintable() else " " for each in encodable)
    return " ".join(printable.split())[:LONGEST_QUERY]
