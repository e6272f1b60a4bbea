"""Loads EmbodiedBench's published tasks."""
