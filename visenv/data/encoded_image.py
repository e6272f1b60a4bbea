"""Decodes an image that a file or a cell contains as text."""

from __future__ import annotations

import base64
import binascii
import re

from visenv.errors import DataError

_DATA_PREFIX = re.compile(
    r"data:[\w.+/-]{0,80}(?:;[\w=.-]{1,80})*;base64,", re.ASCII | re.IGNORECASE
)
_OF_ADDRESSES = str.maketrans("-_", "+/")
"""The two characters that Base64 has in addresses instead of its own."""


def decoded_bytes(encoded: bytes | str, name: str) -> bytes:
    """Return the bytes of an image; Base64 text may have line ends and a ``data:`` prefix.

    Args:
        encoded: The bytes, or Base64 text.
        name: The name of the image in errors.

    Raises:
        DataError: If the text is not Base64.
    """
    if isinstance(encoded, bytes):
        return encoded
    prefix = _DATA_PREFIX.match(encoded)
    text = encoded[prefix.end() :] if prefix else encoded
    try:
        plain = "".join(text.split()).translate(_OF_ADDRESSES)
        return base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"{name} is not Base64 text: {error}") from error
