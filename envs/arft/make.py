"""Collects the functions that create the Visual-ARFT environments, and their settings."""

from .coding.make import make_coding
from .presets import ArftSearchSettings, ArftSettings
from .search.make import make_search

__all__ = ["ArftSearchSettings", "ArftSettings", "make_coding", "make_search"]
