"""habitat-lab as a simulator: over House, and over habitat-sim with ReplicaCAD.

`player` belongs to this process; all other modules run in a child with the interpreter of the
simulators, which has habitat-lab and no visenv.
"""
