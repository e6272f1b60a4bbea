"""Reads which files the report of `visenv view` names as damaged or missing."""

from __future__ import annotations

import re
from pathlib import Path


def problems(folder: Path) -> str:
    """Return the problems in the report of a folder, as JSON."""
    found = re.search(r'"problems":(\[.*?\]),"parts":', (folder / "report.html").read_text())
    assert found is not None
    return found[1]


def names(folder: Path, path: Path) -> bool:
    """Return whether the report of a folder names a file as damaged or missing."""
    is_absent = f"there is no {path.name}" in (folder / "report.html").read_text()
    return is_absent or str(path) in problems(folder)
