"""Reads, renders, indexes and searches documents of many pages."""

from __future__ import annotations

from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.document import Document, Library, PageRanker
from visenv.documents.library import FolderLibrary

__all__ = ["Bm25Ranker", "Document", "FolderLibrary", "Library", "PageRanker"]
