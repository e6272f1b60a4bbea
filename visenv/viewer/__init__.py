"""The static report of a run: one page that works from a file, with no network."""

from visenv.viewer.report import write_report

__all__ = ["write_report"]
