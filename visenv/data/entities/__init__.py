"""A made-up world of linked entities: images to ask about, and articles to search for answers."""

from visenv.data.entities.library import WorldEngine
from visenv.data.entities.world import EntitiesWorld

__all__ = ["EntitiesWorld", "WorldEngine"]
