"""Computes the scores and step rewards that both ARFT environments use."""
