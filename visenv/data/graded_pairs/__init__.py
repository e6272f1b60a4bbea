"""Responses of graded quality, in pairs and fours: a procedural world for preference judging."""

from visenv.data.graded_pairs.responses import GRADES
from visenv.data.graded_pairs.world import GradedPairs

__all__ = ["GRADES", "GradedPairs"]
