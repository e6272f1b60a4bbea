"""Loads the published data sets of the ARM environments, and computes their metrics."""
