"""Contains the tools of ArftSearch: searching with any engine, or in the sample's own world."""

from .engine import PassageSearch, SearchArguments
from .world import SearchTool, SnippetTool

__all__ = ["PassageSearch", "SearchArguments", "SearchTool", "SnippetTool"]
