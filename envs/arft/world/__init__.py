"""Contains the parts that the procedural worlds of both ARFT environments share."""
