"""Reads the problems that a report of `visenv view` lists."""

from __future__ import annotations

import re
from pathlib import Path


def problems(folder: Path) -> str:
    """Return the problems in the report of a folder, as JSON."""
    found = re.search(r'"problems":(\[.*?\]),"parts":', (folder / "report.html").read_text())
    assert found is not None
    return found[1]
