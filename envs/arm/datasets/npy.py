"""Reads NumPy files of Python objects without running code from the files.

``numpy.load(..., allow_pickle=True)`` runs any code that a file names. The data sets in this format
need dictionaries, lists, texts, numbers and arrays, and this module creates nothing else. Damaged
files must not crash the reader: all opcodes are checked before the first is executed, and the state
of an array is checked before it is passed to NumPy.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from typing_extensions import override

from visenv.decoding.files import check_opcodes, open_regular
from visenv.errors import DataError

_TYPE = re.compile(r"[?bhilqBHILQefdO]|[biufc]\d{1,2}|[SU]\d{1,9}|O8")
"""Kinds of dtypes: booleans, numbers, bytes, texts and objects; no records, dates or subarrays."""
_REFUSED = frozenset(
    {
        "BYTEARRAY8", "NEXT_BUFFER", "READONLY_BUFFER", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX",
        "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID",
    }
)  # fmt: skip
"""Opcodes of buffers, extensions and other ways to create objects, which plain data never uses."""
_ORDERS = ("<", ">", "|", "=")


def read_objects(file: Path) -> list[Any]:
    """Return the items of a one-dimensional array of objects.

    Raises:
        DataError: If the file is another array, is damaged, or contains anything but plain data.
    """
    try:
        with open_regular(file) as opened:
            _read_header(opened)
            pickled = opened.read()
        check_opcodes(pickled, _REFUSED)
        content = _PlainUnpickler(io.BytesIO(pickled)).load()
    except DataError as error:
        raise DataError(f"{file}: {error}") from error
    except Exception as error:  # a broken pickle can raise anything
        raise DataError(f"{file} is not a readable NumPy file: {error}") from error
    if not isinstance(content, np.ndarray) or content.ndim != 1:
        shape = content.shape if isinstance(content, np.ndarray) else type(content).__name__
        raise DataError(f"{file} must contain an array of one dimension, got {shape}.")
    return list(content)


def _read_header(opened: BinaryIO) -> None:
    version = np.lib.format.read_magic(opened)  # type: ignore[no-untyped-call]
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    _, _, dtype = readers[version](opened)  # type: ignore[no-untyped-call]
    if dtype != np.dtype(object):
        raise DataError(f"expected an array of objects, got {dtype}.")


class _Type:
    """Represents a dtype while a file is read."""

    def __init__(self, code: object) -> None:
        if not isinstance(code, str) or not _TYPE.fullmatch(code):
            raise DataError(f"it holds an array of {code!r:.40}.")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1]
        if order not in _ORDERS:
            raise DataError(f"it holds an array in the byte order {order!r:.40}.")
        self.dtype = self.dtype.newbyteorder(order)


class _Array(np.ndarray[Any, Any]):
    """Represents an array that checks its state before it is set."""

    @override
    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, content = state
        count = math.prod(int(side) for side in shape)
        plain = isinstance(content, list) if kind.dtype.hasobject else isinstance(content, bytes)
        size = count if kind.dtype.hasobject else count * kind.dtype.itemsize
        if not plain or min(shape, default=0) < 0 or len(content) != size:
            raise DataError(f"it holds an array of shape {shape!r:.80} with other content.")
        checked: Any = (1, tuple(shape), kind.dtype, bool(fortran), content)
        super().__setstate__(checked)


class _Maker:
    """Holds the callables of a file as bound methods, because a file could change functions."""

    def type(self, code: object, *_: object) -> _Type:
        return _Type(code)

    def array(self, *_: object) -> _Array:
        return _Array((0,), np.uint8)

    def scalar(self, kind: _Type, content: bytes) -> Any:
        if kind.dtype.hasobject or len(content) != kind.dtype.itemsize:
            raise DataError(f"it holds a number of {kind.dtype} with other content.")
        return np.frombuffer(content, kind.dtype)[0]


_MAKER = _Maker()
_ALLOWED: dict[str, Any] = {
    "numpy.ndarray": None,  # named, but never called
    "numpy.dtype": _MAKER.type,
    **{f"numpy.{core}.multiarray._reconstruct": _MAKER.array for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": _MAKER.scalar for core in ("core", "_core")},
}


class _PlainUnpickler(pickle.Unpickler):
    """Creates arrays and the types of Python literals; raises an error for other imports."""

    @override
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = f"{module_name}.{global_name}"
        if name not in _ALLOWED:
            raise DataError(
                f"it would import {name}, which no data needs: only arrays of plain values are read"
            )
        return _ALLOWED[name]
