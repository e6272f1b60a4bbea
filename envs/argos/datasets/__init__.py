"""Loads benchmarks and training data of Argos in their published layouts, with official scores."""
