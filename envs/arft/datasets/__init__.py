"""The published data sets of the ARFT environments, and the scores of their tables."""
