"""Implements the magnifier: super-resolution networks and interpolation, selected by name."""
