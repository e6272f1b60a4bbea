"""Writes the static report of a run: a page that opens from a file, without a network."""

from visenv.viewer.report import write_report

__all__ = ["write_report"]
