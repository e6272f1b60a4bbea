"""Simulators that play the embodied environments beside House's own simulation."""
