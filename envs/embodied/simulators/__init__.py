"""Contains the simulators that run the embodied environments in child processes."""
