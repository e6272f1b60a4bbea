"""Creates responses of graded quality, in pairs and fours, for preference judging."""

from .responses import GRADES
from .world import GradedPairs

__all__ = ["GRADES", "GradedPairs"]
