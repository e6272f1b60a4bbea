"""The tools of the ARM environments."""
