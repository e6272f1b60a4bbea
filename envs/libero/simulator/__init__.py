"""Implements LIBERO's simulator, which runs in the interpreter that has LIBERO.

The modules of this folder import the standard library, NumPy, LIBERO's packages and each other, and
are written for Python 3.9 (`visenv.simulators.protocol`).
"""
