"""The tools of ArftSearch: a search on any engine, or in the sample's own world."""

from .engine import PassageSearch, SearchArguments
from .world import SearchTool, SnippetTool

__all__ = ["PassageSearch", "SearchArguments", "SearchTool", "SnippetTool"]
