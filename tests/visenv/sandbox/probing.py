"""What several attacks look with, and make images of."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from visenv.sandbox import LocalBackend, Sandbox
from visenv.sandbox.fork_server import ForkServer


def server_of(sandbox: Sandbox) -> ForkServer:
    """The server that makes its processes."""
    assert isinstance(sandbox.backend, LocalBackend)
    assert sandbox.backend._server is not None
    return sandbox.backend._server


def children(pid: int) -> list[int]:
    """Processes that this one has made and that were not waited for."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG."""
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check
