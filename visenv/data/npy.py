"""NumPy files of Python objects, read without running what they hold.

``numpy.load(..., allow_pickle=True)`` runs whatever a file names. A data set that is published so
needs dictionaries, lists, texts, numbers and arrays, and nothing else is made here.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from visenv.errors import DataError

_RECONSTRUCT = np.empty(0).__reduce__()[0]
_SCALAR = np.float64(0).__reduce__()[0]
_ALLOWED: dict[str, Any] = {
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    **{f"numpy.{core}.multiarray._reconstruct": _RECONSTRUCT for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": _SCALAR for core in ("core", "_core")},
}


def read_objects(file: Path) -> list[Any]:
    """The items of a one-dimensional array of objects.

    Raises:
        DataError: If the file is no such array, is broken, or holds anything but plain data.
    """
    try:
        with file.open("rb") as opened:
            _read_header(opened)
            content = _PlainUnpickler(io.BytesIO(opened.read())).load()
    except DataError as error:
        raise DataError(f"{file}: {error}") from error
    except Exception as error:  # a broken pickle can raise anything
        raise DataError(f"{file} is no NumPy file that can be read: {error}") from error
    if not isinstance(content, np.ndarray) or content.ndim != 1:
        raise DataError(f"{file} holds no one-dimensional array.")
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


class _PlainUnpickler(pickle.Unpickler):
    """Makes arrays and what Python writes as literals; refuses to import anything else."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = f"{module_name}.{global_name}"
        if name not in _ALLOWED:
            raise DataError(f"it would import {name}, which no data needs.")
        return _ALLOWED[name]
