"""Contains the tools of the ARM environments."""
