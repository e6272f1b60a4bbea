"""Contains the Argos environments, one file for each id."""

from .image import ArgosImage
from .video import ArgosVideo

__all__ = ["ArgosImage", "ArgosVideo"]
