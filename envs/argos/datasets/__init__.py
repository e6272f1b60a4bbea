"""Benchmarks and training data of Argos: real layouts, official scores."""
