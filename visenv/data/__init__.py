"""Where samples come from: procedural worlds, files, published data sets."""
