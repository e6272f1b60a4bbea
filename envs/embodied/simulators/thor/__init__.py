"""Runs EB-ALFRED over AI2-THOR: ai2thor's own `Controller` in a child process, and a player.

The child runs `simulator`, `controller`, `skills`, `body`, `scene`, `tracker` and `actions` in the
interpreter that has ai2thor: these modules import the standard library, NumPy, ai2thor and each
other, and are written for Python 3.9 (`visenv.simulators.protocol`). The player that serves House
(`player`) runs in the interpreter of the environment; `simulation` connects the environment with
the child.
"""
