"""Loads the published data sets of the ARFT environments, and computes the scores of tables."""
