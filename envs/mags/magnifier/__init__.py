"""The magnifier: super-resolution networks and plain interpolation, behind one name."""
