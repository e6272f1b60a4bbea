"""The procedural worlds of the ARM environments: samples about judging, made from a seed."""
