"""The published data sets of the ARM environments, and their metrics."""
