"""Runs steps that create training data, and contains the steps that any task can use."""
