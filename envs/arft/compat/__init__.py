"""What both ARFT environments do otherwise with ``compat="arft"``: the public code's behavior."""
