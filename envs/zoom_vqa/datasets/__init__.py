"""Loads the data sets that only ZoomVQA uses."""
