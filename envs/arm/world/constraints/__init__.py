"""A procedural world of texts that keep to a constraint or just fail to, with the check to tell."""

from .world import MAKERS, ConstraintWorld

__all__ = ["MAKERS", "ConstraintWorld"]
