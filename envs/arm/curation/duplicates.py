"""Drops pairs without contrast, and copies of earlier pairs (section 3.2).

The paper drops pairs whose responses are overly similar, and gives no threshold. Similarity here is
the normalized Indel similarity of rapidfuzz on case-folded text with single blanks, 0 to 1:
``1 - (insertions + deletions) / (both lengths)``. "a red car" and "a red van" have 0.78: of 18
characters four are inserted or deleted.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz
from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.decoding.files import read_regular
from visenv.decoding.pictures import MOST_BYTES
from visenv.errors import ConfigurationError, DataError

from .rows import images_of, short_text

_BUCKETS = 32


class _Pair(NamedTuple):
    """Holds a pair's texts, normalized for comparison."""

    id: str
    question: str
    chosen: str
    rejected: str


class _Group:
    """Holds the kept pairs that share their images.

    The difference of two texts' character counts is a lower bound of their insertions and
    deletions. NumPy compares all counts at once, which rules out nearly every pair of texts.
    """

    def __init__(self) -> None:
        self._pairs: list[_Pair] = []
        self._counts = np.zeros((4, _BUCKETS), np.int32)
        self._lengths = np.zeros(4, np.int32)

    def add(self, pair: _Pair) -> None:
        number = len(self._pairs)
        if number == len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
        self._counts[number] = counts = _counts(pair)
        self._lengths[number] = counts.sum()
        self._pairs.append(pair)

    def copy_of(self, pair: _Pair, threshold: float) -> tuple[str, float] | None:
        """Return the first pair with at least this similarity in each text, and the similarity."""
        number, mine = len(self._pairs), _counts(pair)
        apart = np.abs(self._counts[:number] - mine).sum(1)
        allowed = (1 - threshold) * (self._lengths[:number] + mine.sum())
        for place in np.flatnonzero(apart <= allowed + 1e-6):
            other = self._pairs[place]
            least = min(fuzz.ratio(pair[part], other[part]) for part in (1, 2, 3)) / 100
            if least >= threshold:
                return other.id, least
        return None


def _counts(pair: _Pair) -> NDArray[np.int32]:
    """Return the character counts of the three texts together, hashed into buckets."""
    codes = np.frombuffer("".join(pair[1:]).encode("utf-32-le", "surrogatepass"), "<u4")
    return np.bincount(codes % _BUCKETS, minlength=_BUCKETS).astype(np.int32)


@dataclass(eq=False)
class Dedupe(CurationStep):
    """Drops pairs whose two responses are too similar, and near copies of earlier pairs.

    A near copy has bitwise equal images, and its question, right response and wrong response are
    each similar to those of the earlier pair. Another flaw in the response to the same question is
    not a copy, and the same texts about another image are not. Every pair is compared exactly with
    all kept pairs of the same images; this is quadratic only in the number of pairs that share
    their images or have none.

    Raises:
        ConfigurationError: If a threshold is not above 0 and at most 1.
    """

    name: ClassVar[str] = "dedupe"
    in_order: ClassVar[bool] = True

    contrast: float = 0.9
    """Pairs whose responses are at least this similar are dropped, 0 to 1."""
    duplicate: float = 0.95
    """Pairs at least this similar to an earlier one with the same images are dropped, 0 to 1."""

    def __post_init__(self) -> None:
        for name, value in (("contrast", self.contrast), ("duplicate", self.duplicate)):
            if not 0 < value <= 1:
                raise ConfigurationError(f"{name} must be above 0 and at most 1, got {value}.")
        self._groups: dict[str, _Group] = defaultdict(_Group)
        self._digests: dict[str, str] = {}

    @override
    def begin(self) -> None:
        """Forget the pairs of an earlier run."""
        self._groups.clear()
        self._digests.clear()

    @override
    def settings(self) -> dict[str, Any]:
        return {"contrast": self.contrast, "duplicate": self.duplicate}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep the pair if it has contrast and is new."""
        pair = _pair(row)
        contrast = fuzz.ratio(pair.chosen, pair.rejected) / 100
        if contrast >= self.contrast:
            return dropped("responses too alike", similarity=round(contrast, 4))
        group = self._groups[self._images(row)]
        found = group.copy_of(pair, self.duplicate)
        if found is not None:
            return dropped("near duplicate", of=found[0], similarity=round(found[1], 4))
        group.add(pair)
        return kept(row)

    @override
    def remember(self, row: Row, outcome: RowOutcome) -> None:
        """Add a pair that was kept before to those that later pairs are compared with."""
        if outcome.status == "kept":
            self._groups[self._images(row)].add(_pair(row))

    def _images(self, row: Row) -> str:
        """Return a hash of the content of the row's images."""
        return " ".join(self._digest(path) for path in images_of(row))

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            try:
                content = read_regular(Path(path), MOST_BYTES)
            except (OSError, ValueError) as error:
                raise DataError(f"the image {path!r:.200} cannot be read: {error}") from error
            self._digests[path] = hashlib.sha256(content).hexdigest()
        return self._digests[path]


def _pair(row: Row) -> _Pair:
    texts = (_plain(short_text(row, key)) for key in ("question", "chosen", "rejected"))
    return _Pair(row["id"], *texts)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
