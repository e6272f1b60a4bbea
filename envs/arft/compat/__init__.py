"""Implements the public code's behavior in both ARFT environments, for ``compat="arft"``."""
