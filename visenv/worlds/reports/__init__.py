"""Generates documents of several pages, and questions about them."""

from visenv.worlds.reports.library import ReportsLibrary

__all__ = ["ReportsLibrary"]
