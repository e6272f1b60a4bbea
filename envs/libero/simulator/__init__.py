"""LIBERO's simulator. The modules of this folder run in the interpreter that has LIBERO.

They import the standard library, NumPy, LIBERO's packages and each other, and are written for
Python 3.9 (`visenv.simulators.protocol`).
"""
