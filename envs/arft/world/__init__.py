"""What the procedural worlds of both ARFT environments share."""
