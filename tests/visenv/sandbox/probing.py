"""Inspects servers and processes for several attacks, and makes parts of images."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from visenv.sandbox import LocalBackend, Sandbox
from visenv.sandbox.fork_server import ForkServer


def server_of(sandbox: Sandbox) -> ForkServer:
    """Return the server that makes the processes of a sandbox."""
    assert isinstance(sandbox.backend, LocalBackend)
    assert sandbox.backend._server is not None
    return sandbox.backend._server


def children(pid: int) -> list[int]:
    """Return the children of a process that still run or were not waited for."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG."""
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check
