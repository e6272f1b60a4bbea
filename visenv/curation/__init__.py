"""Curation: the runner of steps that make training data, and the steps that any task can use."""
