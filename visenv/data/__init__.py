"""Contains the sources of samples: procedural worlds, files, and published data sets."""
