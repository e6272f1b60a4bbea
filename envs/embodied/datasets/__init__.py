"""EmbodiedBench's published tasks."""
