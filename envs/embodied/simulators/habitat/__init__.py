"""Uses habitat-lab as a simulator: over House, and over habitat-sim with ReplicaCAD.

The module `player` runs in this process; all other modules run in a child process with the
interpreter of the simulators, which has habitat-lab but not visenv.
"""
