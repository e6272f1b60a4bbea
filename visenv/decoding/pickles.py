"""Checks the opcodes of a pickle before any of them is executed."""

from __future__ import annotations

import pickletools
from collections.abc import Set as AbstractSet

from visenv.errors import DataError


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
