"""Which segments begin alike, and which go through the network together.

The members of a group share their prompt, images included. A tree reads what its segments share
once; micro-batches are filled by what is really read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visenv.policy import Budget
from visenv.types import Segment

_WORTH = 16
"""Fewer shared tokens are left unshared: a tree costs attention calls of its own."""


class Tree(NamedTuple):
    """Segments that begin alike.

    Attributes:
        members: Which segments.
        shared: Their first tokens that are read once for all; 0 for a segment alone.
    """

    members: tuple[int, ...]
    shared: int


def grow(segments: Sequence[Segment]) -> list[Tree]:
    """Share segments out over trees so that the fewest tokens are read.

    In lexical order, segments that begin alike are neighbours, and what several share is the least
    that any two neighbours among them share. So the best trees are runs of that order, found by
    dynamic programming over where the last run begins.

    Returns:
        Each segment once.
    """
    if not segments:
        return []
    keys = _keys(segments)
    order = sorted(range(len(keys)), key=lambda index: keys[index].tobytes())
    common = np.array([_common(keys[one], keys[other]) for one, other in pairwise(order)], np.int64)
    common[common < _WORTH] = 0
    starts = _runs(common)
    trees = []
    for start, end in pairwise([*starts, len(order)]):
        shared = int(common[start : end - 1].min()) if end - start > 1 else 0
        trees.append(Tree(tuple(sorted(order[start:end])), shared))
    return trees


def _keys(segments: Sequence[Segment]) -> list[NDArray[np.int64]]:
    """Each segment's tokens, placeholders replaced by a number of their image.

    So no common beginning ends inside an image: equal images have equally many placeholders.
    """
    numbers: dict[tuple[str, tuple[int, int, int]], int] = {}
    keys = []
    for segment in segments:
        key = segment.token_ids.astype(np.int64)
        for span in segment.images:
            number = numbers.setdefault((span.sha256, span.grid), len(numbers))
            key[span.offset : span.offset + span.length] = -1 - number
        keys.append(key)
    return keys


def _common(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """How many first tokens are the same."""
    length = min(len(one), len(other))
    different = np.flatnonzero(one[:length] != other[:length])
    return int(different[0]) if len(different) else length


def _runs(common: NDArray[np.int64]) -> list[int]:
    """Where the runs begin that save the most: a run of n that share s saves (n - 1) s tokens."""
    count = len(common) + 1
    saved = np.zeros(count + 1, np.int64)  # at best, among the first so many
    begin = np.zeros(count + 1, np.int64)  # of the last run then
    shared = np.zeros(count, np.int64)  # by the segments from here to the present one
    for end in range(1, count + 1):
        if end > 1:
            shared[end - 2] = common[end - 2]
            np.minimum(shared[: end - 1], common[end - 2], out=shared[: end - 1])
        gains = saved[:end] + np.arange(end - 1, -1, -1) * shared[:end]
        begin[end] = end - 1 - int(np.argmax(gains[::-1]))  # of equals, the shortest run
        saved[end] = gains[begin[end]]
    starts: list[int] = []
    end = count
    while end:
        end = int(begin[end])
        starts.append(end)
    return starts[::-1]


# ------------------------------------------------------------------------------------ micro-batches


class _Part:
    """What one forward pass will read."""

    def __init__(self, segments: Sequence[Segment], budget: Budget) -> None:
        self.members: list[int] = []
        self._segments = segments
        self._budget = budget
        self._tokens = 0
        self._patches: dict[str, int] = {}

    def take(self, tree: Tree, members: Sequence[int], *, anyway: bool = False) -> bool:
        """Take members of a tree in if the budget has room (or `anyway`); whether it was done."""
        fresh = not set(tree.members).intersection(self.members)
        own = sum(len(self._segments[member]) - tree.shared for member in members)
        tokens = self._tokens + own + (tree.shared if fresh else 0)
        if tokens > self._budget.tokens and not anyway:
            return False
        patches = self._patches | _patches(self._segments[member] for member in members)
        limit = self._budget.patches
        if limit is not None and sum(patches.values()) > limit and not anyway:
            return False
        self.members += members
        self._tokens, self._patches = tokens, patches
        return True


def split(segments: Sequence[Segment], budget: Budget) -> list[list[int]]:
    """See `TrainablePolicy.split`: the largest trees first, each into the first part with room.

    A tree that exceeds the budget is cut between its members; what it shares is then read again.
    """
    parts: list[_Part] = []
    sizes = {tree: _size(tree, segments) for tree in grow(segments)}
    for tree in sorted(sizes, key=lambda tree: (-sizes[tree], tree.members)):
        if any(part.take(tree, tree.members) for part in parts):
            continue
        parts.append(_Part(segments, budget))
        if parts[-1].take(tree, tree.members):
            continue
        for member in tree.members:
            if not parts[-1].take(tree, [member]):
                if parts[-1].members:
                    parts.append(_Part(segments, budget))
                parts[-1].take(tree, [member], anyway=True)
    return [part.members for part in parts]


def _size(tree: Tree, segments: Sequence[Segment]) -> int:
    own = sum(len(segments[member]) - tree.shared for member in tree.members)
    return tree.shared + own


def _patches(segments: Iterable[Segment]) -> dict[str, int]:
    """Patches of each distinct image."""
    spans = (span for segment in segments for span in segment.images)
    return {span.sha256: int(np.prod(span.grid)) for span in spans}
