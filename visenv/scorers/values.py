"""Defines the values that scorers return, and their exact form in JSON, in bytes and in a digest.

A value is JSON-like (None, bool, int, float, str, list, dict with string keys) and may contain
NumPy arrays and bytes at any depth: the pixels of a magnifier, the vector of an encoder, the masks
of a segmenter. Every float is finite.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

INLINE_BYTES = 1024
"""Arrays and bytes up to this size are written into the JSON; larger ones are put into the
store.
"""

_MAX_DEPTH = 32
_KINDS = "biuf"  # NumPy's letters for bool, signed, unsigned and floating-point types


def normalized(value: Any) -> Any:
    """Return the value in the form in which a cache, a saved event or another process returns it.

    Tuples become lists, NumPy scalars become Python numbers, and arrays become read-only,
    contiguous and little-endian. Containers are copied, so that a caller may change them.

    Raises:
        ValueError: If a number is not finite, or the value contains an object of another type than
            the types listed at the top of this module.
    """
    return _normalized(value, 0)


def _normalized(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return value
    if isinstance(value, np.generic):
        return _normalized(value.item(), depth)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a number that is not finite: {value}")
        return value
    if isinstance(value, np.ndarray):
        return _frozen_array(value)
    if depth >= _MAX_DEPTH:
        raise ValueError(f"a value that is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, (list, tuple)):
        return [_normalized(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("a mapping with keys that are not text")
        return {key: _normalized(item, depth + 1) for key, item in value.items()}
    raise ValueError(f"a {type(value).__name__}, which is not a JSON-like value, array or bytes")


def _frozen_array(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in _KINDS:
        raise ValueError(f"an array of {array.dtype}, which is not boolean or real")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("an array with a number that is not finite")
    little = array.dtype.newbyteorder("<")
    if array.flags.writeable or not array.flags.c_contiguous or array.dtype != little:
        array = np.array(array, little, order="C")  # a copy: the owner may still write to it
        array.flags.writeable = False
    return array


def nbytes(value: Any) -> int:
    """Return the approximate size of a normalized value in memory, in bytes."""
    if isinstance(value, np.ndarray):
        return 128 + int(value.nbytes)
    if isinstance(value, (str, bytes)):
        return 64 + len(value)
    if isinstance(value, list):
        return 64 + sum(nbytes(item) for item in value)
    if isinstance(value, dict):
        return 64 + sum(nbytes(key) + nbytes(item) for key, item in value.items())
    return 32


# ------------------------------------------------------------------------------------------- JSON


def to_json(value: Any, store: MutableMapping[str, bytes] | None = None) -> Any:
    """Return a normalized value as plain JSON, exact to the bit.

    An array becomes ``{"$array": {"dtype", "shape", "data"}}`` and bytes become
    ``{"$bytes": {"data"}}``, in base64. If there is a store, a payload of more than `INLINE_BYTES`
    is put into it with its SHA-256 as key, and ``"sha256"`` replaces ``"data"``.

    Args:
        value: A value that `normalized` returned.
        store: Receives large payloads. If None, all payloads are written into the JSON.
    """
    if isinstance(value, np.ndarray):
        head = {"dtype": value.dtype.str, "shape": list(value.shape)}
        return {"$array": head | _payload(value.tobytes(), store)}
    if isinstance(value, bytes):
        return {"$bytes": _payload(value, store)}
    if isinstance(value, list):
        return [to_json(item, store) for item in value]
    if isinstance(value, dict):
        return {_escaped(key): to_json(item, store) for key, item in value.items()}
    return value


def from_json(written: Any, store: Mapping[str, bytes] | None = None) -> Any:
    """Return the value that `to_json` wrote.

    Args:
        written: The JSON.
        store: Holds the payloads, by SHA-256.

    Raises:
        ValueError: If the JSON was not written by `to_json`, or a payload is missing or damaged.
    """
    try:
        return _from_json(written, store or {})
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a saved value: {type(error).__name__}: {error}") from error


def _from_json(written: Any, store: Mapping[str, bytes]) -> Any:
    if isinstance(written, list):
        return [_from_json(item, store) for item in written]
    if not isinstance(written, dict):
        return written
    if len(written) == 1:
        if "$bytes" in written:
            return _payload_of(written["$bytes"], store)
        if "$array" in written:
            head = written["$array"]
            dtype = np.dtype(head["dtype"])
            if dtype.kind not in _KINDS:
                raise ValueError(f"an array of {dtype}")
            # The array has the shape of the header.
            return np.frombuffer(_payload_of(head, store), dtype).reshape(head["shape"])
    return {key.removeprefix("\\"): _from_json(item, store) for key, item in written.items()}


def _escaped(key: str) -> str:
    """Return a key that cannot be confused with an array's; `_from_json` reverses this."""
    return f"\\{key}" if key.startswith(("$", "\\")) else key


def _payload(data: bytes, store: MutableMapping[str, bytes] | None) -> dict[str, str]:
    if store is None or len(data) <= INLINE_BYTES:
        return {"data": base64.b64encode(data).decode("ascii")}
    name = hashlib.sha256(data).hexdigest()
    if name not in store:
        store[name] = data
    return {"sha256": name}


def _payload_of(head: Mapping[str, str], store: Mapping[str, bytes]) -> bytes:
    if "data" in head:
        return base64.b64decode(head["data"], validate=True)
    name = head["sha256"]
    if name not in store:
        raise ValueError(f"the payload {name} is missing")
    data = store[name]
    if hashlib.sha256(data).hexdigest() != name:
        raise ValueError(f"the payload {name} is damaged")
    return data


def canonical(plain: Any) -> bytes:
    """Return plain JSON as bytes for hashing, which are equal for equal content.

    Raises:
        ValueError: If a number is not finite.
    """
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


# ------------------------------------------------------------------------------------------ bytes


def pack(value: Any) -> bytes:
    """Return a normalized value as compressed bytes with a checksum, for the cache on disk."""
    payloads: dict[str, bytes] = {}
    written = to_json(value, payloads)
    sizes = {name: len(data) for name, data in payloads.items()}
    head = json.dumps([written, sizes]).encode("ascii")
    return zlib.compress(b"".join([head, b"\n", *payloads.values()]), level=1)


def unpack(packed: bytes) -> Any:
    """Return the value that `pack` packed.

    Raises:
        ValueError: If the bytes are damaged.
    """
    try:
        head, _, rest = zlib.decompress(packed).partition(b"\n")
        written, sizes = json.loads(head)
    except (zlib.error, TypeError) as error:
        raise ValueError(f"not a packed value: {error}") from error
    payloads: dict[str, bytes] = {}
    start = 0
    for name, size in sizes.items():
        payloads[name] = rest[start : start + size]
        start += size
    return from_json(written, payloads)
