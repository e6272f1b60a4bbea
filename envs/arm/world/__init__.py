"""Contains the procedural worlds of the ARM environments, which create samples from a seed."""
