"""Runs a Python program as an ordinary user: as_user.py FILE ARGUMENT...; must be started by root.

If only root can access the folder of the interpreter, the folder is mounted at a place that
everybody can access, in a mount namespace that ends with this process.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from visenv.sandbox.guest import kernel

USER = 61234  # not the id of a real user

kernel.unshare(kernel.CLONE_NEWNS)
kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
interpreter = Path(sys.base_prefix)
closed = [each for each in reversed(interpreter.parents) if not each.stat().st_mode & stat.S_IXOTH]
if closed:
    kernel.mount(str(interpreter), "/mnt", None, kernel.MS_BIND)
    kernel.mount("tmpfs", str(closed[0]), "tmpfs", 0, "mode=755")
    interpreter.mkdir(parents=True)
    kernel.mount("/mnt", str(interpreter), None, kernel.MS_BIND)
os.setgroups([])
os.setresgid(USER, USER, USER)
os.setresuid(USER, USER, USER)
os.environ["HOME"] = "/nonexistent"
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
