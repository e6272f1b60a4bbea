"""Holds what the procedural worlds of both ARFT environments share."""
