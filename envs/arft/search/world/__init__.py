"""Creates a fictional world of linked entities: images with questions, and articles to search."""

from .library import EntitiesWorld, WorldEngine

__all__ = ["EntitiesWorld", "WorldEngine"]
