"""Opens files of other people: only regular files, up to a size, pickles without code, and UTF-8.

A pipe or a device in a received folder would make a reader wait for ever, and a sparse file of a
terabyte needs no space on the sender's disk.
"""

from __future__ import annotations

import codecs
import os
import pickletools
import stat
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import BinaryIO

from visenv.errors import DataError, FileRefusedError

MOST_FILE_BYTES = 4 * 2**30
"""Maximum number of bytes of a file that is read as a whole."""

MOST_LINE_BYTES = 256 * 2**20
"""Maximum number of bytes of a line of a file; a line may contain an image as Base64 text."""

_GZIP = b"\x1f\x8b"
_OTHER_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def check_opcodes(pickled: bytes, refused: AbstractSet[str] = frozenset()) -> None:
    """Check that a pickle uses no refused opcode, and does not fill the memory.

    The unpickler of C allocates memory for all object numbers up to the largest one that an opcode
    stores, so that 20 bytes could allocate 64 GiB.

    Args:
        pickled: The pickle.
        refused: Names of opcodes (`pickletools`) that the data does not need.

    Raises:
        DataError: If it does; the message is the end of a sentence about the pickle.
        ValueError: If the pickle is damaged.
    """
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name in refused:
            raise DataError(f"it uses the opcode {opcode.name}, which plain data do not need.")
        if opcode.name.endswith("PUT") and int(str(argument)) > len(pickled):
            raise DataError("it has more object numbers than objects.")


def regular_state(path: Path) -> os.stat_result:
    """Return the state of a regular file, or of the regular file to which a link leads.

    Raises:
        FileRefusedError: If it is something else.
        OSError: If it does not exist or cannot be read.
        ValueError: If the name contains NUL.
    """
    found = path.stat()
    _require_regular(found, path)
    return found


def check_folder(folder: str | Path) -> None:
    """Check that a folder of a model contains only regular files and folders.

    Other libraries open these files. A name that is no folder, for example on a hub, passes.

    Raises:
        FileRefusedError: If there is a pipe, a device or a socket.
        OSError: If the folder cannot be read.
    """
    if Path(folder).is_dir():
        for path in Path(folder).iterdir():
            if path.exists() and not path.is_dir():
                regular_state(path)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read its bytes.

    Raises:
        FileRefusedError: If it is not a regular file.
        OSError: If it does not exist or cannot be read.
        ValueError: If the name contains NUL.
    """
    regular_state(path)  # the opening of some devices has effects
    # If it has been replaced by a pipe meanwhile, the flag lets the opening return at once.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    try:
        _require_regular(os.fstat(descriptor), path)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Path, most: int = MOST_FILE_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Args:
        path: The file.
        most: Maximum number of bytes of the file.

    Raises:
        FileRefusedError: If it is not a regular file, or is larger.
        OSError: If it does not exist or cannot be read.
        ValueError: If the name contains NUL.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > most else file.read(most + 1)
    if max(size, len(content)) > most:
        larger = max(size, len(content))
        raise FileRefusedError(
            str(path), f"has {larger:,} bytes; at most {most:,} are read at once"
        )
    return content


def read_text(path: Path, most: int = MOST_FILE_BYTES) -> str:
    """Return the text of a regular file in UTF-8, with plain line ends; see `read_regular`.

    Raises:
        UnicodeDecodeError: If it is not UTF-8.
    """
    text = read_regular(path, most).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path, most: int = MOST_LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of a regular file with their ends, one at a time.

    Of a line of more than `most` bytes, the first ``most + 1`` are yielded, so that the reader can
    refuse it (`visenv.decoding.json_text.read_json` does) and continue with the next line.

    Args:
        path: The file.
        most: Maximum number of bytes of a line.

    Raises:
        FileRefusedError: If it is not a regular file.
        OSError: If it does not exist or cannot be read.
        ValueError: If the name contains NUL.
    """
    with open_regular(path) as file:
        while line := file.readline(most + 1):
            yield line
            while len(line) > most and not line.endswith(b"\n"):
                line = file.readline(most + 1)


def _require_regular(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise FileRefusedError(str(path), f"is not a regular file but {kind}")


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
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
