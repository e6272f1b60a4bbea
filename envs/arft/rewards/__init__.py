"""Scores and step rewards that both ARFT environments use."""
