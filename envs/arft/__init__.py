"""The Visual-ARFT family: agents that repair images by code, and that search."""

from .coding import make_coding
from .presets import ArftSearchSettings, ArftSettings
from .search import make_search

__all__ = ["ArftSearchSettings", "ArftSettings", "make_coding", "make_search"]
