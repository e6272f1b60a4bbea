"""A made-up world of linked entities: images to ask about, and articles to search for answers."""

from .entities import EntitiesWorld
from .library import WorldEngine

__all__ = ["EntitiesWorld", "WorldEngine"]
