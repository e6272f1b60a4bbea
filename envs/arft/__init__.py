"""The Visual-ARFT family: agents that repair images by code, and that search."""

from .coding import make_coding
from .search import SearchSettings, make_search
from .settings import Settings

__all__ = ["SearchSettings", "Settings", "make_coding", "make_search"]
