"""Procedural worlds that several families use."""
