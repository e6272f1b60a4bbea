"""Contains the ARM environments and their base classes."""
