"""Duplicates: pairs without contrast, and pairs that are there already (paper, section 3.2).

The paper drops pairs whose responses are overly similar and gives no threshold. Similarity here is
the normalized Indel similarity of rapidfuzz on case-folded text with single blanks, 0 to 1:
``1 - (insertions + deletions) / (both lengths)``. "a red car" and "a red van" have 0.78: of 18
characters four are inserted or deleted.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz
from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.errors import ConfigurationError, DataError

from .rows import images_of, short_text

_BUCKETS = 32


class _Pair(NamedTuple):
    """A pair's texts, as they are compared."""

    id: str
    question: str
    chosen: str
    rejected: str


class _Group:
    """The kept pairs that share their images.

    Two texts are at least as many insertions and deletions apart as their counts of characters
    differ; the counts, which NumPy compares all at once, rule out nearly every pair of texts.
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
        """Return the first pair similar by `threshold` in each text, with its similarity."""
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
    """Return the counts of characters, hashed into buckets, in the three texts together."""
    codes = np.frombuffer("".join(pair[1:]).encode("utf-32-le", "surrogatepass"), "<u4")
    return np.bincount(codes % _BUCKETS, minlength=_BUCKETS).astype(np.int32)


class Dedupe(CurationStep):
    """Drops pairs whose two responses are too alike, and near copies of earlier pairs.

    A near copy has the same images, to the byte, and its question, its right and its wrong response
    are each alike: another flaw in the response to the same question is no copy, nor are the same
    words about another image. Every pair is compared with all kept ones of the same images: exact,
    and quadratic only in how many pairs share their images, or have none.

    Args:
        contrast: Pairs whose responses are at least this similar are dropped.
        duplicate: Pairs at least this similar to an earlier one, in each text, are dropped.

    Raises:
        ConfigurationError: If a threshold is not above 0 and at most 1.
    """

    name: ClassVar[str] = "dedupe"
    in_order: ClassVar[bool] = True

    def __init__(self, contrast: float = 0.9, duplicate: float = 0.95) -> None:
        for name, value in (("contrast", contrast), ("duplicate", duplicate)):
            if not 0 < value <= 1:
                raise ConfigurationError(f"{name} must be above 0 and at most 1, got {value}.")
        self._contrast = contrast
        self._duplicate = duplicate
        self._groups: dict[str, _Group] = defaultdict(_Group)
        self._digests: dict[str, str] = {}

    @override
    def begin(self) -> None:
        """Forget the pairs of an earlier run."""
        self._groups.clear()
        self._digests.clear()

    @override
    def settings(self) -> dict[str, Any]:
        return {"contrast": self._contrast, "duplicate": self._duplicate}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep the pair if it has contrast and is new."""
        pair = _pair(row)
        contrast = fuzz.ratio(pair.chosen, pair.rejected) / 100
        if contrast >= self._contrast:
            return dropped("responses too alike", similarity=round(contrast, 4))
        group = self._groups[self._images(row)]
        found = group.copy_of(pair, self._duplicate)
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
        """Return one word that stands for the content of the row's images."""
        return " ".join(self._digest(path) for path in images_of(row))

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            try:
                content = Path(path).read_bytes()
            except (OSError, ValueError) as error:
                raise DataError(f"the image {path!r:.200} cannot be read: {error}") from error
            self._digests[path] = hashlib.sha256(content).hexdigest()
        return self._digests[path]


def _pair(row: Row) -> _Pair:
    texts = (_plain(short_text(row, key)) for key in ("question", "chosen", "rejected"))
    return _Pair(row["id"], *texts)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
