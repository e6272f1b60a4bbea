"""Implements the paper's evaluation: extraction and judging of answers, and table 1."""
