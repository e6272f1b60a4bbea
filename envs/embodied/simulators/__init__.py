"""Simulators with code of their own that play the embodied environments in child processes."""
