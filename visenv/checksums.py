"""Writes the checksums of folders and of JSON files, and finds what has changed since then.

::

    checksums.json      {"config.json": "<SHA-256>", "model.safetensors": "<SHA-256>", …}

A disk, a transfer or a power cut can change or truncate a file of weights. Libraries load many such
files without an error, so a run would continue with other weights. A file of JSON contains the
checksum of its other fields as ``sha256`` (`sealed`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from visenv.decoding.files import open_regular
from visenv.decoding.json_text import WRONG_VALUES, read_json_at
from visenv.errors import DataError, RunError
from visenv.files import is_relative, write_text

CHECKSUMS = "checksums.json"
"""The file of the checksums in a folder of weights."""

SEAL = "sha256"
"""The field with the checksum of the other fields of a JSON file."""

_BLOCK = 2**20


def checksum(path: Path) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON-like object with the checksum of its other fields as ``sha256``."""
    fields = without_checksum(content)
    # A file is read with strings as keys, which have another order than numbers.
    text = json.dumps(json.loads(json.dumps(fields)), sort_keys=True)
    return {**fields, SEAL: hashlib.sha256(text.encode()).hexdigest()}


def unsealed(content: object) -> dict[str, Any]:
    """Return the fields of an object that `sealed` returned, without the checksum.

    Raises:
        DataError: If the fields have changed since then, or the value is no object.
    """
    if not isinstance(content, Mapping):
        raise DataError(f"it must contain an object, got {type(content).__name__}")
    if is_damaged(content):
        raise DataError("it is damaged: its fields differ from its checksum")
    return without_checksum(content)


def without_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object that `sealed` returned, also if they have changed."""
    return {name: value for name, value in content.items() if name != SEAL}


def is_damaged(content: Mapping[str, Any]) -> bool:
    """Return whether an object that `sealed` returned has changed since then.

    An object without a checksum, which an earlier version wrote, counts as unchanged.
    """
    return SEAL in content and content[SEAL] != sealed(content)[SEAL]


def files_below(folder: Path) -> list[str]:
    """Return the names of all files of a folder, relative to it, in order."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()
    )


def checksums_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the checksums of some files of a folder, by name."""
    return {name: checksum(folder / name) for name in names}


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files of a folder to its file `CHECKSUMS`."""
    names = [name for name in files_below(folder) if name != CHECKSUMS]
    found = checksums_of(folder, names)
    write_text(folder / CHECKSUMS, json.dumps(found, indent=1) + "\n")


def check_checksums(
    folder: Path, *, required: bool = False, names: Collection[str] | None = None
) -> None:
    """Compare the files of a folder with its checksums. A folder without checksums passes.

    Args:
        folder: The folder.
        required: Whether a folder without checksums is an error.
        names: The files to compare; by default all.

    Raises:
        RunError: If a file is missing or has changed. The message names the file.
    """
    path = folder / CHECKSUMS
    if not path.exists() and not required:
        return
    try:
        found = unsealed(read_json_at(path))
        expected = found if names is None else {name: found[name] for name in names}
    except WRONG_VALUES as error:
        raise RunError(f"{path} does not contain checksums: {error}") from error
    problem = first_problem(folder, expected)
    if problem:
        raise RunError(f"{problem} Restore the file, or use other weights.")


def first_problem(folder: Path, expected: Mapping[str, object]) -> str:
    """Return a sentence about the first file that differs from its checksum, or ``""``.

    Args:
        folder: The folder of the files.
        expected: The checksums by the names of the files.
    """
    for name, known in expected.items():
        if not is_relative(name):
            return f"{folder} has checksums of {name!r:.200}, which is not a file below it."
        path = folder / name
        if not path.exists():
            return f"{path} is missing."
        try:
            found = checksum(path)
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}."
        if found != known:
            return f"{path} is damaged: its SHA-256 has changed since it was written."
    return ""
