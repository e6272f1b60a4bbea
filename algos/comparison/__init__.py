"""Compares algorithms on a suite of tiny tasks (`visenv compare`)."""
