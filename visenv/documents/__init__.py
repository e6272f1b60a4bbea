"""Documents of many pages: read, rendered, indexed, searched."""

from __future__ import annotations

from visenv.documents.document import Document, Library, PageRanker

__all__ = ["Document", "Library", "PageRanker"]
