"""Opens files with the viewer of the system; does nothing on a server without a screen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def open_on_screen(path: Path) -> None:
    """Open a file with the system's viewer for its type; do nothing if there is no screen."""
    on_mac = sys.platform == "darwin"
    viewer = shutil.which("open" if on_mac else "xdg-open")
    if viewer and (on_mac or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        quiet = subprocess.DEVNULL
        subprocess.Popen([viewer, str(path)], stdin=quiet, stdout=quiet, stderr=quiet)
