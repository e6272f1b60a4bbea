"""Checks whether a PNG file is complete, without decoding it.

Every chunk of a PNG file has a checksum, so damage by a disk, a transfer or a power cut is found
without decoding the image.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from visenv.decoding.files import open_regular

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_END = b"IEND"
"""The type of the last chunk."""

_BLOCK = 2**20


def is_whole_png(path: Path) -> bool:
    """Return whether a file exists and is a PNG whose chunks agree with their checksums.

    Raises:
        OSError: If the file cannot be read.
        FileRefusedError: If it is not a regular file.
    """
    try:
        with open_regular(path) as file:
            if file.read(len(_SIGNATURE)) != _SIGNATURE:
                return False
            while len(head := file.read(8)) == 8:
                left, kind = struct.unpack(">I4s", head)
                found = zlib.crc32(kind)
                while left and (block := file.read(min(left, _BLOCK))):
                    found = zlib.crc32(block, found)
                    left -= len(block)
                if left or file.read(4) != struct.pack(">I", found):
                    return False
                if kind == _END:
                    return True
    except FileNotFoundError:
        pass
    return False
