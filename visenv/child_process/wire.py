"""Defines the messages between a host and its child: a JSON object and raw arrays.

::

    "VSIM"  4 bytes
    length of the JSON, 4 bytes, and of the arrays together, 8 bytes (little-endian)
    the JSON object; its key "arrays" lists name, dtype and shape of each array, in order
    the arrays, one after the other, C-contiguous

Both sides import this module, so it needs only the standard library and NumPy, on Python 3.9 or
newer.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

MAGIC = b"VSIM"
HEADER = struct.Struct("<4sIQ")
MOST_JSON = 16 * 2**20
"""Largest JSON of a message, bytes."""

MOST_ARRAYS = 256 * 2**20
"""Largest size of all arrays of a message, bytes."""

DTYPES = ("uint8", "float32", "float64", "int64")
BYTES = "bytes"
"""Name, in place of a dtype, of a `memoryview`."""

Facts = dict[str, Any]
Arrays = dict[str, Any]


class WireError(ValueError):
    """Raised for bytes that are not a message; the error describes the problem."""


def pack(message: Mapping[str, Any], arrays: Mapping[str, Any]) -> list[Any]:
    """Return the pieces of a message, bytes-like, in the order in which to write them.

    Args:
        message: A JSON object without the key ``"arrays"``.
        arrays: Arrays by name; the type of each is in `DTYPES`. A `memoryview` of bytes is
            read back as a `memoryview`; neither side needs NumPy for it.

    Raises:
        WireError: If an array has another type, or the message is too large.
        TypeError: If JSON cannot represent the message.
        ValueError: If the message contains NaN or infinity.
    """
    listed = []
    pieces = []
    for name, array in arrays.items():
        if isinstance(array, memoryview):
            piece = array.cast("B")
            listed.append([name, BYTES, [piece.nbytes]])
            pieces.append(piece)
            continue
        import numpy as np  # without NumPy, a child must still report that NumPy is missing

        solid = np.ascontiguousarray(array)
        if solid.dtype.name not in DTYPES:
            raise WireError(f"The array {name!r} must be one of {DTYPES}, got {solid.dtype}.")
        listed.append([name, solid.dtype.name, list(solid.shape)])
        pieces.append(solid.reshape(-1).view(np.uint8).data)  # [elements], then [bytes]
    text = json.dumps({**message, "arrays": listed}, allow_nan=False).encode()
    size = sum(piece.nbytes for piece in pieces)
    check_sizes(len(text), size)
    return [HEADER.pack(MAGIC, len(text), size) + text, *pieces]


def read_header(header: bytes | bytearray | memoryview) -> tuple[int, int]:
    """Return the sizes of the JSON and of the arrays, bytes.

    Raises:
        WireError: If the header is invalid, or announces too many bytes.
    """
    magic, text, arrays = HEADER.unpack(header)
    if magic != MAGIC:
        raise WireError(f"expected a message, got {bytes(header)!r}")
    check_sizes(text, arrays)
    return text, arrays


def check_sizes(text: int, arrays: int) -> None:
    """Check that a message is not too large.

    Raises:
        WireError: If the message is too large.
    """
    if text > MOST_JSON or arrays > MOST_ARRAYS:
        raise WireError(
            f"a message of {text + arrays} bytes is too large (at most {MOST_JSON} of JSON and "
            f"{MOST_ARRAYS} of arrays)"
        )


def unpack(text: bytes, blob: Any) -> tuple[Facts, Arrays]:
    """Return the message and its arrays, which are views of `blob`.

    Raises:
        WireError: If the JSON is invalid, or the arrays do not have the announced size.
    """
    try:
        message = json.loads(text)
        listed = message.pop("arrays")
        arrays: Arrays = {}
        start = 0
        for name, dtype, shape in listed:
            known = dtype == BYTES or dtype in DTYPES
            if not known or not all(type(side) is int and side >= 0 for side in shape):
                raise WireError(f"the array {name!r} of type {dtype!r} and shape {shape!r}")
            if dtype == BYTES:
                arrays[str(name)] = piece = memoryview(blob)[start : start + math.prod(shape)]
                start += piece.nbytes
                continue
            import numpy as np

            size = math.prod(shape) * np.dtype(dtype).itemsize
            piece = memoryview(blob)[start : start + size]
            arrays[str(name)] = np.frombuffer(piece, dtype).reshape(shape)  # [*shape]
            start += size
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise WireError(f"not a valid message: {error}") from error
    if start != len(blob):
        raise WireError(f"expected arrays of {start} bytes, got {len(blob)}")
    return message, arrays
