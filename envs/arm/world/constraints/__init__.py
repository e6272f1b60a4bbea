"""Creates texts that satisfy a constraint or narrowly violate it, with the deciding check."""

from .world import MAKERS, ConstraintWorld

__all__ = ["MAKERS", "ConstraintWorld"]
