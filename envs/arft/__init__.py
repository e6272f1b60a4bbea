"""The Visual-ARFT family: agents that repair images by code, and that search."""

from .coding import make_coding
from .presets import SearchSettings, Settings
from .search import make_search

__all__ = ["SearchSettings", "Settings", "make_coding", "make_search"]
