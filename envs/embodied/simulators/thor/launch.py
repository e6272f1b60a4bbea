"""Starts a player so that it ends with the process that started it.

It is run as ``python launch.py <environment as JSON> <program> <arguments>``. The kernel keeps the
death signal over `exec`, so that the player needs no code for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Replace this process by the player."""
    os.environ.update(json.loads(sys.argv[1]))
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
