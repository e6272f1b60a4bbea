"""Runs a Python program as in a container: in_container.py REFUSED FILE ARGUMENT...

REFUSED lists the calls that the container's seccomp profile refuses: ``namespaces`` (Docker's
default: unshare, mount and similar calls, clone with flags for namespaces), ``landlock``,
``seccomp``, ``mounts`` (user namespaces can be made, but nothing can be mounted in them, as with
AppArmor on Ubuntu 24.04).
"""

from __future__ import annotations

import os
import struct
import sys

from visenv.sandbox.guest import kernel, seccomp

MOUNTS = [165, 166, 155, 428, 429, 430, 431, 432, 433, 442]
REFUSED = {
    "namespaces": [272, 308, 161, *MOUNTS],
    "mounts": MOUNTS,
    "landlock": [444, 445, 446],
    "seccomp": [157, 317],
}
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
NEW_NAMESPACES = 0x7E02_0000
ALLOW, NOT_PERMITTED, NOT_THERE = 0x7FFF_0000, 0x0005_0001, 0x0005_0026


def profile(refused: list[str]) -> bytes:
    """Return the filter for x86-64."""
    code = [(LOAD, 0, 0, 0)]
    for number in sorted({number for name in refused for number in REFUSED[name]}):
        code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, NOT_PERMITTED)]
    if "namespaces" in refused:
        code += [(EQUAL, 0, 1, 435), (RETURN, 0, 0, NOT_THERE)]
        code += [(EQUAL, 0, 3, 56), (LOAD, 0, 0, 16), (ANY_BIT, 0, 1, NEW_NAMESPACES)]
        code += [(RETURN, 0, 0, NOT_PERMITTED)]
    code += [(RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *each) for each in code)


kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(profile(sys.argv[1].split(",")))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
