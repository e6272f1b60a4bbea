"""The data sets that only ZoomVQA has a loader for."""
