"""Compares algorithms on a suite of tiny tasks (`visenv compare`)."""

from .command import compare

__all__ = ["compare"]
