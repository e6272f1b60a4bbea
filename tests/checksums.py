"""Removes the checksums of saved episodes, as a person does who edits them."""

from __future__ import annotations

import re


def without_checksums(lines: str) -> str:
    """Return the lines of a file of episodes without the field ``crc32``."""
    return re.sub(',"crc32":"[^"]*"', "", lines)
