"""Decodes texts of other people: UTF-8, with or without a byte-order mark."""

from __future__ import annotations

import codecs
from pathlib import Path

from visenv.decoding.files import open_regular
from visenv.errors import DataError

_GZIP = b"\x1f\x8b"
_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def check_text_file(path: Path) -> None:
    """Check the first bytes of a file that should contain text in UTF-8.

    Raises:
        DataError: If the file is missing, empty, compressed, or has the mark of another encoding.
    """
    try:
        with open_regular(path) as file:
            start = file.read(8)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not start.removeprefix(codecs.BOM_UTF8):
        raise DataError(f"{path} is empty.")
    if start.startswith(_GZIP):
        raise DataError(f"{path} is compressed with gzip: unpack it, for example with gunzip.")
    for mark, name in _OTHER_ENCODINGS.items():
        if start.startswith(mark):
            raise DataError(f"{path} is encoded in {name}: save it as UTF-8.")
    if 0 in start:
        raise DataError(f"{path} is binary or encoded in UTF-16: expected text in UTF-8.")


def decode_utf8(content: bytes) -> str:
    """Return the text of bytes in UTF-8.

    Raises:
        DataError: If they are not UTF-8, or contain a NUL byte.
    """
    if b"\0" in content:
        raise DataError(f"a NUL byte at byte {content.index(0)}; expected text")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise DataError(
            f"not UTF-8: byte 0x{byte:02x} at byte {error.start}; save the file as UTF-8"
        ) from None
