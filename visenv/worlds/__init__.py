"""Contains the procedural worlds that several families use."""
