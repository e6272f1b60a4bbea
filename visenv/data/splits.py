"""Chooses the rows of a split, or holds out a part of rows that have no split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from visenv.data.table_files import HELD_OUT, TableFile, split_name
from visenv.errors import ConfigurationError, UnknownNameError


class SplitChoice:
    """Chooses the rows of a split.

    Args:
        name: The split, or ``""`` for all rows.
        holdout: Share of the rows in ``"test"`` if the rows have no split, above 0 and below 1.
        files: The files of rows.

    Raises:
        ConfigurationError: If `holdout` is not such a number.
    """

    def __init__(self, name: str, holdout: str | float, files: Sequence[TableFile]) -> None:
        self._name = split_name(name)
        self._holdout = _share(holdout)
        self._of_files = {file.split for file in files} - {""}

    def may_have(self, file: TableFile) -> bool:
        """Return whether a file may have rows of the split."""
        if not self._name or not file.split or self._of_files == {"train"}:
            return True
        return file.split == self._resolved(self._of_files)

    def choose(self, ids: Iterable[str], splits: Sequence[str]) -> list[bool] | None:
        """Return whether each row belongs to the split, by its id and split; None for all rows."""
        if not self._name:
            return None
        known = {split_name(split) for split in {*splits}} - {""}
        if known - {"train"}:
            wanted = self._resolved(known | self._of_files)
            return [split_name(split) == wanted for split in splits]
        if self._name not in ("train", *HELD_OUT):
            raise UnknownNameError("split of these rows", self._name, ("train", "test"))
        held_out = _held_out(list(ids), self._holdout)
        return [is_held_out == (self._name != "train") for is_held_out in held_out]

    def _resolved(self, known: set[str]) -> str:
        """Return the split; a held-out part may have any of its usual names."""
        if self._name in known:
            return self._name
        usual = [name for name in HELD_OUT if name in known]
        if self._name in HELD_OUT and usual:
            return usual[0]
        raise UnknownNameError("split of these rows", self._name, sorted(known))


def _held_out(identities: Sequence[str], share: float) -> list[bool]:
    """Return which rows are held out: those with a small hash of their id, at least one of two."""
    hashes = [hashlib.sha256(each.encode("utf-8", "surrogatepass")).digest() for each in identities]
    limit = int(share * 2**64)
    chosen = [int.from_bytes(digest[:8]) < limit for digest in hashes]
    if len(hashes) > 1 and not any(chosen):
        chosen[hashes.index(min(hashes))] = True
    return chosen


def _share(given: str | float) -> float:
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise ConfigurationError(f"holdout must be above 0 and below 1, got {given!r}.")
    return share
