"""A procedural world of documents of several pages, with questions and responses to judge."""

from visenv.data.reports.library import ReportsLibrary
from visenv.data.reports.world import PRESETS, ReportsWorld

__all__ = ["PRESETS", "ReportsLibrary", "ReportsWorld"]
