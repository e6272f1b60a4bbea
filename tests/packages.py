"""Finds a path of the installed packages without spaces, for compilers.

PyTorch compiles extensions of DeepSpeed, and kernels of vLLM's CPU build, by commands that do not
quote paths. In a folder whose name contains a space, tests therefore load packages by a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sysconfig
import tempfile
from pathlib import Path


def link_of_packages() -> Path | None:
    """Return a link to the installed packages if their path contains a space, or else None.

    The link has the same name in every run, because another name would compile everything again.
    """
    packages = sysconfig.get_path("purelib")
    if " " not in packages:
        return None
    name = f"visenv-packages-{os.getuid()}-{hashlib.sha256(packages.encode()).hexdigest()[:8]}"
    link = Path(tempfile.gettempdir(), name)
    with contextlib.suppress(FileExistsError):
        link.symlink_to(packages)
    assert link.lstat().st_uid == os.getuid(), f"{link} belongs to another user."
    assert link.resolve() == Path(packages).resolve()
    return link


def python_path() -> dict[str, str]:
    """Return the environment variable that makes a program load packages by the link, if any."""
    link = link_of_packages()
    if link is None:
        return {}
    paths = [str(link), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}
