"""Creates a fictional world of linked entities: images with questions, and articles to search."""

from .entities import EntitiesWorld
from .library import WorldEngine

__all__ = ["EntitiesWorld", "WorldEngine"]
